package main

import (
	"context"
	"fmt"

	"mobula/benchmarks/floor"
)

// syncFloor is what a round trip costs at least, in microseconds: over a socket to another process or, embedded, through
// three actors.
func (b *bench) syncFloor(ctx context.Context) (us float64, name string, err error) {
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
