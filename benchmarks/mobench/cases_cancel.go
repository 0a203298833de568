package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"mobula"
	"mobula/benchmarks/floor"
)

// cancelCase cancels one running task after another: how long until its context ends, seen by the connection that the task closes then.
func cancelCase(ctx context.Context, b *bench) (*report, error) {
	return b.in(ctx, setup{}, func(cl *cluster) (*report, error) {
		if _, err := cancelRounds(cl.ctx, b.warm/10+1); err != nil {
			return nil, err
		}
		cl.cancelled(b.warm/10 + 1)
		var p99 []float64
		s, err := b.measure(cl.ctx, func(ctx context.Context, _ int) (float64, error) {
			t, err := cancelRounds(ctx, b.cancels)
			cl.cancelled(b.cancels)
			p99 = append(p99, floor.Quantile(t, 0.99)*1e6)
			return median(t) * 1e6, err
		})
		r := &report{unit: "us", samples: s}
		r.add("p99", median(p99))
		return r, err
	})
}

// cancelRounds gives the seconds of n cancellations in turn.
func cancelRounds(ctx context.Context, n int) ([]float64, error) {
	out := make([]float64, 0, n)
	for range n {
		took, err := cancelOne(ctx)
		if err != nil {
			return out, fmt.Errorf("cancel: %w", err)
		}
		out = append(out, took.Seconds())
	}
	return out, nil
}

func cancelOne(ctx context.Context) (time.Duration, error) {
	g, err := closeGates(ctx, 1)
	if err != nil {
		return 0, err
	}
	defer g.remove()
	stop := context.AfterFunc(ctx, func() { _ = g.conns[0].SetDeadline(time.Unix(1, 0)) })
	defer stop()
	begun := time.Now()
	if err := g.refs[0].Cancel(ctx); err != nil {
		return 0, err
	}
	if _, err := g.conns[0].Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		return 0, fmt.Errorf("the task was to close its connection: %w", err)
	}
	took := time.Since(begun)
	if _, err := g.refs[0].Get(ctx); !errors.Is(err, mobula.ErrCancelled) {
		return 0, fmt.Errorf("a cancelled task ended with %w", err)
	}
	return took, nil
}
