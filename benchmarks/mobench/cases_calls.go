package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"mobula"
	"mobula/benchmarks/floor"
)

// taskRounds gives the seconds of each of n tasks called in turn.
func taskRounds(ctx context.Context, n int, opts ...mobula.TaskOption) ([]float64, error) {
	out := make([]float64, 0, n)
	for i := range n {
		begun := time.Now()
		v, err := echo.Go(ctx, mobula.V(i), opts...).Get(ctx)
		d := time.Since(begun)
		if err != nil || v != i {
			return nil, fmt.Errorf("task %d gave %d, %w", i, v, err)
		}
		out = append(out, d.Seconds())
	}
	return out, nil
}

// taskBurst gives the tasks a second of n submitted at once.
func taskBurst(ctx context.Context, n int, opts ...mobula.TaskOption) (float64, error) {
	begun := time.Now()
	refs := make([]mobula.Ref[int], n)
	for i := range refs {
		refs[i] = echo.Go(ctx, mobula.V(i), opts...)
	}
	got, err := mobula.GetAll(ctx, refs)
	rate := perSecond(n, begun)
	return rate, numbered(got, 0, err)
}

// numbered checks that results are the numbers from first on.
func numbered(got []int, first int, err error) error {
	if err != nil {
		return err
	}
	for i, v := range got {
		if v != first+i {
			return fmt.Errorf("result %d is %d, want %d", i, v, first+i)
		}
	}
	return nil
}

// inTurn is a -sync case: the median of each run's round trips. Over nodes each run has a floor before it: whether the kernel wakes the other process on this
// processor or on an idle one makes a factor of two, of the floor as of the rounds, and changes from one second to the next.
func (b *bench) inTurn(ctx context.Context, rounds func(ctx context.Context, cl *cluster) (func(n int) ([]float64, error), error)) (*report, error) {
	bare, name, err := b.syncFloor(ctx)
	if err != nil {
		return nil, err
	}
	return b.in(ctx, setup{}, func(cl *cluster) (*report, error) {
		do, err := rounds(cl.ctx, cl)
		if err != nil {
			return nil, err
		}
		if _, err := do(b.warm); err != nil {
			return nil, err
		}
		var p99 []float64
		floors := []float64{bare}
		s, err := b.measure(cl.ctx, func(ctx context.Context, run int) (float64, error) {
			if run > 0 && slices.Contains(modesOverNodes, b.mode) {
				again, _, err := b.syncFloor(ctx)
				if err != nil {
					return 0, err
				}
				floors = append(floors, again)
			}
			t, err := do(b.rounds)
			p99 = append(p99, floor.Quantile(t, 0.99)*1e6)
			return median(t) * 1e6, err
		})
		cl.did(b.warm + b.runs*b.rounds)
		r := &report{unit: "us", samples: s, floor: median(floors)}
		r.add("p99", median(p99))
		if len(floors) > 1 {
			r.addSamples("floor_us", floors)
		}
		r.add("floor_is", name)
		return r, err
	})
}

// atOnce is an -async case.
func (b *bench) atOnce(ctx context.Context, burst func(ctx context.Context, cl *cluster) (func(n int) (float64, error), error)) (*report, error) {
	bare, err := b.asyncFloor(ctx)
	if err != nil {
		return nil, err
	}
	return b.in(ctx, setup{}, func(cl *cluster) (*report, error) {
		do, err := burst(cl.ctx, cl)
		if err != nil {
			return nil, err
		}
		if _, err := do(b.tasks); err != nil { // workers start, heaps grow
			return nil, err
		}
		var s []float64
		used, err := cpu(b.runs*b.tasks, func() (err error) {
			s, err = b.measure(cl.ctx, func(context.Context, int) (float64, error) { return do(b.tasks) })
			return err
		})
		cl.did(b.tasks + b.runs*b.tasks)
		r := &report{unit: "tasks/s", samples: s, floor: bare}
		r.add("cpu_us", used)
		if bare > 0 {
			r.add("floor_is", "three actor hops, piped")
		}
		return r, err
	})
}

func taskSync(ctx context.Context, b *bench) (*report, error) {
	return b.inTurn(ctx, func(ctx context.Context, _ *cluster) (func(int) ([]float64, error), error) {
		return func(n int) ([]float64, error) { return taskRounds(ctx, n) }, nil
	})
}

func taskAsync(ctx context.Context, b *bench) (*report, error) {
	return b.atOnce(ctx, func(ctx context.Context, _ *cluster) (func(int) (float64, error), error) {
		return func(n int) (float64, error) { return taskBurst(ctx, n) }, nil
	})
}

// newCounter makes the actor of a case and counts its creation.
func newCounter(ctx context.Context, cl *cluster, opts ...mobula.ActorOption) (mobula.ActorRef[counter], error) {
	a, err := counterType.Spawn(ctx, opts...)
	if err != nil {
		return a, err
	}
	cl.did(1)
	return a, a.Ready(ctx)
}

func actorSync(ctx context.Context, b *bench) (*report, error) {
	return b.inTurn(ctx, func(ctx context.Context, cl *cluster) (func(int) ([]float64, error), error) {
		return actorRounds(ctx, cl)
	})
}

// actorRounds gives the seconds of each of n calls of a new actor in turn.
func actorRounds(ctx context.Context, cl *cluster, opts ...mobula.ActorOption) (func(n int) ([]float64, error), error) {
	a, err := newCounter(ctx, cl, opts...)
	calls := 0
	return func(n int) ([]float64, error) {
		out := make([]float64, 0, n)
		for range n {
			calls++
			begun := time.Now()
			v, err := counterInc.Go(ctx, a, mobula.V(1)).Get(ctx)
			d := time.Since(begun)
			if err != nil || v != calls {
				return nil, fmt.Errorf("call %d gave %d, %w", calls, v, err)
			}
			out = append(out, d.Seconds())
		}
		return out, nil
	}, err
}

func actorAsync(ctx context.Context, b *bench) (*report, error) {
	r, err := b.atOnce(ctx, func(ctx context.Context, cl *cluster) (func(int) (float64, error), error) {
		a, err := newCounter(ctx, cl)
		calls := 0
		return func(n int) (float64, error) {
			begun := time.Now()
			refs := make([]mobula.Ref[int], n)
			for i := range refs {
				refs[i] = counterInc.Go(ctx, a, mobula.V(1))
			}
			got, err := mobula.GetAll(ctx, refs)
			rate := perSecond(n, begun)
			calls += n
			return rate, numbered(got, calls-n+1, err)
		}, err
	})
	if r != nil {
		r.unit = "calls/s"
	}
	return r, err
}

// actorCreate makes actors without a name, all at once, and waits until each is constructed.
func actorCreate(ctx context.Context, b *bench) (*report, error) {
	return b.each(ctx, "actors/s", func(ctx context.Context, cl *cluster) (float64, error) {
		begun := time.Now()
		actors := make([]mobula.ActorRef[counter], b.actors)
		for i := range actors {
			var err error
			if actors[i], err = counterType.Spawn(ctx); err != nil {
				return 0, err
			}
		}
		cl.did(b.actors)
		for i, a := range actors {
			if err := a.Ready(ctx); err != nil {
				return 0, fmt.Errorf("actor %d: %w", i, err)
			}
		}
		rate := perSecond(b.actors, begun)
		for _, a := range actors {
			a.Release()
		}
		return rate, cl.settle(ctx)
	})
}
