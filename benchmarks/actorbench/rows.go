package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// sizes are how much each row does.
type sizes struct {
	asks, betweens, tells, hops, pairs, paired, crowd, outstanding, spawned int
	awayAsks, awayTells, awayOutstanding                                    int
	window, seats                                                           int
}

// cpus is how many processors a run uses.
const cpus = 2

// What rows are made of.
const (
	tokens  = 100  // of the ring
	callers = 64   // that ask one actor
	window  = 1000 // calls outstanding
)

var (
	full = sizes{asks: 100_000, betweens: 100_000, tells: 500_000, hops: 10_000, pairs: 500, paired: 400, crowd: 200_000, outstanding: 200_000, spawned: 100_000,
		awayAsks: 20_000, awayTells: 100_000, awayOutstanding: 100_000, window: window, seats: 1000}
	// tiny runs every line; its figures mean nothing.
	tiny = sizes{asks: 200, betweens: 200, tells: 500, hops: 20, pairs: 10, paired: 20, crowd: 640, outstanding: 500, spawned: 50,
		awayAsks: 50, awayTells: 200, awayOutstanding: 200, window: 50, seats: 50}
)

// figures are what a row found, by name.
type figures map[string]float64

// row is a measurement.
type row struct {
	name, what string
	systems    []string
	run        func(ctx context.Context, system string, z *sizes) (figures, error)
}

var (
	here = []string{mobulas, protoactor, floors}
	away = []string{mobulas, floors}
)

// rows are all of them, in the order of the table.
var rows = []row{
	{"ask", "a program asks an actor, one call after another", here, of(ask[int], ask[parcel])},
	{"actor-asks", "an actor asks another, one call after another", here, of(actorAsks[int], actorAsks[parcel])},
	{"one-way", "messages that nothing answers, from one sender to one actor", here, of(oneWay[int], oneWay[parcel])},
	{"ring", "1,000 actors pass 100 tokens on", here, of(ring[int], ring[parcel])},
	{"pairs", "500 actors ask one each, all at once", here, of(pairs[int], pairs[parcel])},
	{"64-callers", "64 goroutines ask one actor", here, of(crowd[int], crowd[parcel])},
	{"outstanding", "1,000 calls of one actor under way: each awaited by itself, or all together", here, of(outstanding[int], outstanding[parcel])},
	{"spawn", "100,000 actors made, until each is constructed", here, spawn},
	{"two-ask", "a program asks an actor in another process", away, of(awayAsk[int], awayAsk[parcel])},
	{"two-one-way", "messages that nothing answers, to an actor in another process", away, of(awayOneWay[int], awayOneWay[parcel])},
	{"two-outstanding", "1,000 calls under way of an actor in another process", away, of(awayOutstanding[int], awayOutstanding[parcel])},
}

// measure does a row with values of one type, and adds to the figures.
type measure[T any] func(ctx context.Context, system string, k *kind[T], z *sizes, out figures) error

// of does a row with both types of values.
func of(withInts measure[int], withParcels measure[parcel]) func(context.Context, string, *sizes) (figures, error) {
	return func(ctx context.Context, system string, z *sizes) (figures, error) {
		out := make(figures)
		if err := withInts(ctx, system, ints, z, out); err != nil {
			return nil, fmt.Errorf("with an int: %w", err)
		}
		if err := withParcels(ctx, system, parcels, z, out); err != nil {
			return nil, fmt.Errorf("with 100 bytes: %w", err)
		}
		return out, nil
	}
}

// inRoom opens actors for f, and closes them.
func inRoom[T any](ctx context.Context, system string, k *kind[T], actors int, f func(r room) error) error {
	r, err := open(ctx, system, k, actors)
	if err != nil {
		return err
	}
	return errors.Join(f(r), r.close())
}

func inAnother[T any](ctx context.Context, system string, k *kind[T], f func(s seatOf) error) error {
	s, err := openAway(ctx, system, k)
	if err != nil {
		return err
	}
	return errors.Join(f(s), s.close())
}

// warmed does a tenth of the work first, and then all of it.
func warmed(n int, do func(n int) error) (time.Duration, error) {
	if err := do(max(n/10, 1)); err != nil {
		return 0, err
	}
	begun := time.Now()
	err := do(n)
	return time.Since(begun), err
}

// perSecond adds a rate.
func (f figures) perSecond(name string, n int, took time.Duration) {
	f[name] = float64(n) / took.Seconds()
}

// askTimes asks n times and gives how long each took, in microseconds and in order.
func askTimes(s seatOf, n int) ([]float64, error) {
	once := s.asker()
	took := make([]float64, n)
	for i := range took {
		begun := time.Now()
		if err := once(i); err != nil {
			return nil, err
		}
		took[i] = float64(time.Since(begun)) / 1e3
	}
	slices.Sort(took)
	return took, nil
}

func ask[T any](ctx context.Context, system string, k *kind[T], z *sizes, out figures) error {
	return inRoom(ctx, system, k, 1, func(r room) error {
		if _, err := askTimes(r, z.asks/10); err != nil {
			return err
		}
		before := usedSoFar()
		took, err := askTimes(r, z.asks)
		if err != nil {
			return err
		}
		used := usedSoFar()
		out[k.name+" p50"], out[k.name+" p99"] = took[len(took)/2], took[len(took)*99/100]
		out[k.name+" cpu"] = float64((used.cpu - before.cpu).Nanoseconds()) / 1e3 / float64(z.asks)
		out[k.name+" allocations"] = float64(used.allocations-before.allocations) / float64(z.asks)
		return nil
	})
}

func actorAsks[T any](ctx context.Context, system string, k *kind[T], z *sizes, out figures) error {
	return inRoom(ctx, system, k, 2, func(r room) error {
		took, err := warmed(z.betweens, func(n int) error { return r.asks(0, n)() })
		out[k.name] = took.Seconds() * 1e6 / float64(z.betweens)
		return err
	})
}

func oneWay[T any](ctx context.Context, system string, k *kind[T], z *sizes, out figures) error {
	return inRoom(ctx, system, k, 1, func(r room) error { return tellAll(r, k.name, z.tells, out) })
}

// tellAll tells, until all have come.
func tellAll(s seatOf, name string, n int, out figures) error {
	told := 0
	took, err := warmed(n, func(n int) error {
		for i := range n {
			if err := s.tell(i); err != nil {
				return err
			}
		}
		told += n
		switch got, err := s.heard(); {
		case err != nil:
			return err
		case got != told:
			return fmt.Errorf("%d messages have come of %d", got, told)
		}
		return nil
	})
	out.perSecond(name, n, took)
	return err
}

func ring[T any](ctx context.Context, system string, k *kind[T], z *sizes, out figures) error {
	return inRoom(ctx, system, k, z.seats, func(r room) error {
		took, err := warmed(z.hops, func(hops int) error {
			for i := range tokens {
				if err := r.pass(i*z.seats/tokens, hops); err != nil {
					return err
				}
			}
			for range tokens {
				select {
				case <-r.over():
				case <-ctx.Done():
					return context.Cause(ctx)
				}
			}
			return nil
		})
		out.perSecond(k.name, tokens*z.hops, took)
		return err
	})
}

func pairs[T any](ctx context.Context, system string, k *kind[T], z *sizes, out figures) error {
	return inRoom(ctx, system, k, 2*z.pairs, func(r room) error {
		took, err := warmed(z.paired, func(n int) error {
			waits := make([]func() error, z.pairs)
			for i := range waits {
				waits[i] = r.asks(2*i, n)
			}
			var errs []error
			for _, wait := range waits {
				errs = append(errs, wait())
			}
			return errors.Join(errs...)
		})
		out.perSecond(k.name, z.pairs*z.paired, took)
		return err
	})
}

func crowd[T any](ctx context.Context, system string, k *kind[T], z *sizes, out figures) error {
	return inRoom(ctx, system, k, 1, func(r room) error {
		took, err := warmed(z.crowd/callers, func(n int) error {
			errs := make([]error, callers)
			var all sync.WaitGroup
			for c := range errs {
				all.Go(func() {
					once := r.asker()
					for i := 0; i < n && errs[c] == nil; i++ {
						errs[c] = once(i)
					}
				})
			}
			all.Wait()
			return errors.Join(errs...)
		})
		out.perSecond(k.name, z.crowd/callers*callers, took)
		return err
	})
}

func outstanding[T any](ctx context.Context, system string, k *kind[T], z *sizes, out figures) error {
	return inRoom(ctx, system, k, 1, func(r room) error {
		for _, way := range []struct {
			name string
			all  bool
		}{{" by Get", false}, {" by GetAll", true}} {
			if err := manyAtOnce(r, k.name+way.name, z.outstanding, z.window, way.all, out); err != nil {
				return err
			}
		}
		return nil
	})
}

func manyAtOnce(s seatOf, name string, n, window int, all bool, out figures) error {
	took, err := warmed(n, func(n int) error { return s.outstanding(max(n, window), window, all) })
	out.perSecond(name, n, took)
	return err
}

func awayAsk[T any](ctx context.Context, system string, k *kind[T], z *sizes, out figures) error {
	return inAnother(ctx, system, k, func(s seatOf) error {
		if _, err := askTimes(s, z.awayAsks/10); err != nil {
			return err
		}
		took, err := askTimes(s, z.awayAsks)
		if err != nil {
			return err
		}
		out[k.name+" p50"], out[k.name+" p99"] = took[len(took)/2], took[len(took)*99/100]
		return nil
	})
}

func awayOneWay[T any](ctx context.Context, system string, k *kind[T], z *sizes, out figures) error {
	return inAnother(ctx, system, k, func(s seatOf) error { return tellAll(s, k.name, z.awayTells, out) })
}

func awayOutstanding[T any](ctx context.Context, system string, k *kind[T], z *sizes, out figures) error {
	return inAnother(ctx, system, k, func(s seatOf) error {
		return manyAtOnce(s, k.name, z.awayOutstanding, z.window, false, out)
	})
}
