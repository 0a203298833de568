package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"mobula/benchmarks/floor"
)

// syncFloor is what a round trip costs at least, in microseconds: over a socket to another process, embedded through
// three actors, over nodes by TLS to another host.
func (b *bench) syncFloor(ctx context.Context) (us float64, name string, err error) {
	if slices.Contains(modesOverNodes, b.mode) {
		var s []float64
		err := b.withPeer(ctx, func(p *floor.Peer) (err error) {
			s, err = p.PingPong(ctx, floor.Messages{Rounds: b.floorRounds, Warmup: min(1000, b.floorRounds)})
			return err
		})
		return median(s) * 1e6, "crypto/tls between two hosts, 256 B", err
	}
	if b.mode == embedded {
		h := startHops()
		defer h.stop()
		s, err := h.inTurn(ctx, b.floorRounds)
		return median(s) * 1e6, "three actor hops", err
	}
	s, err := floor.PingPong(ctx, floor.Messages{Rounds: b.floorRounds, Warmup: min(1000, b.floorRounds)})
	return median(s) * 1e6, "Unix socket, 256 B", err
}

// asyncFloor is the rate of three piped actor hops; only the embedded mode has such a floor.
func (b *bench) asyncFloor(ctx context.Context) (float64, error) {
	if b.mode != embedded {
		return 0, nil
	}
	h := startHops()
	defer h.stop()
	var s []float64
	for range b.repeats {
		v, err := h.piped(ctx, b.tasks)
		if err != nil {
			return 0, err
		}
		s = append(s, v)
	}
	return median(s), nil
}

// withPeer has a process on another host for the time of f.
func (b *bench) withPeer(ctx context.Context, f func(p *floor.Peer) error) error {
	h := b.over.hosts[1]
	p, err := floor.StartPeer(ctx, h.Addr.String(), h.Start)
	if err != nil {
		return err
	}
	return errors.Join(f(p), p.Close())
}

// streaming is what crypto/tls moves between two hosts in one run, GiB/s.
type streaming struct{ reused, cold float64 }

// streamFloor measures it for so many bytes.
func streamFloor(ctx context.Context, p *floor.Peer, bytes int64) (streaming, error) {
	m := floor.Memory{Bytes: bytes, Repeats: 1}
	reused, err := p.Stream(ctx, m, false)
	if err != nil {
		return streaming{}, fmt.Errorf("stream floor: %w", err)
	}
	cold, err := p.Stream(ctx, m, true)
	if err != nil {
		return streaming{}, fmt.Errorf("stream floor: %w", err)
	}
	return streaming{median(reused), median(cold)}, nil
}

// best is the better median of one and two threads.
func (b *bench) best(ctx context.Context, bytes int64, f func(context.Context, floor.Memory) ([]float64, error)) (float64, error) {
	var top float64
	for threads := 1; threads <= 2; threads++ {
		s, err := f(ctx, floor.Memory{Bytes: bytes, Threads: threads, Repeats: b.repeats})
		if err != nil {
			return 0, err
		}
		top = max(top, median(s))
	}
	return top, nil
}

func (b *bench) memcpyFloor(ctx context.Context) (float64, error) {
	v, err := b.best(ctx, b.floorBytes, floor.Memcpy)
	if err != nil {
		return 0, fmt.Errorf("memcpy floor: %w", err)
	}
	return v, nil
}

func (b *bench) touchFloor(ctx context.Context) (float64, error) {
	v, err := b.best(ctx, b.floorBytes, func(ctx context.Context, m floor.Memory) ([]float64, error) { return floor.FirstTouch(ctx, m, false) })
	if err != nil {
		return 0, fmt.Errorf("first-touch floor: %w", err)
	}
	return v, nil
}
