package faults

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"mobula"
	"mobula/e2e/harness"
)

// load keeps a runtime busy: live objects several times the store, tasks that read them, an
// actor, named actors that come and go. It checks every result.
type load struct {
	t     *testing.T
	ctx   context.Context
	big   []mobula.Ref[[]float64] // object i holds bigLen times i
	n     int                     // elements of each
	kills bool                    // worker processes are killed: actors lose their state
	tasks atomic.Int64
	named atomic.Int64
}

func newLoad(t *testing.T, ctx context.Context, bytes, each int) *load {
	l := &load{t: t, ctx: ctx, n: each / 8}
	for i := range bytes / each {
		l.big = append(l.big, harness.Fill.Go(ctx, mobula.V(l.n), mobula.V(float64(i))))
	}
	l.tasks.Add(int64(len(l.big)))
	return l
}

// small runs a batch of tasks whose values travel in messages.
func (l *load) small(n int) error {
	refs := make([]mobula.Ref[float64], n)
	for i := range refs {
		refs[i] = harness.Add.Go(l.ctx, mobula.V(float64(i)), mobula.V(1.0))
	}
	l.tasks.Add(int64(n))
	got, err := mobula.GetAll(l.ctx, refs)
	if err != nil {
		return fmt.Errorf("small tasks: %w", err)
	}
	for i, v := range got {
		if v != float64(i+1) {
			return fmt.Errorf("small task %d gave %v", i, v)
		}
	}
	return nil
}

// large reads live objects, most of which lie in spill files.
func (l *load) large(r *rand.Rand, n int) error {
	for range n {
		i := r.IntN(len(l.big))
		l.tasks.Add(1)
		got, err := harness.Sum.Go(l.ctx, l.big[i]).Get(l.ctx)
		if err != nil {
			return fmt.Errorf("sum of object %d: %w", i, err)
		}
		if got != float64(i*l.n) {
			return fmt.Errorf("sum of object %d gave %v, want %v", i, got, i*l.n)
		}
	}
	return nil
}

// names makes and kills a named actor, which the control plane must know of.
func (l *load) names() error {
	name := fmt.Sprintf("n%d", l.named.Add(1))
	a, err := harness.CounterType.Spawn(l.ctx, mobula.V(5), mobula.Named("crash", name), mobula.Resources{CPU: mobula.NoCPU})
	if err != nil {
		return fmt.Errorf("named actor: %w", err)
	}
	if v, err := harness.CounterInc.Go(l.ctx, a, mobula.V(2)).Get(l.ctx); err != nil || v != 7 {
		return fmt.Errorf("named actor: %v, %w", v, err)
	}
	if err := a.Kill(l.ctx); err != nil {
		return fmt.Errorf("kill of a named actor: %w", err)
	}
	a.Release()
	return nil
}

// run keeps everything going until stop is closed and at least so many tasks have run.
func (l *load) run(seed uint64, tasks int, stop <-chan struct{}) *sync.WaitGroup {
	var wg sync.WaitGroup
	ended := func() bool {
		select {
		case <-stop:
			return l.tasks.Load() >= int64(tasks)
		default:
			return l.ctx.Err() != nil
		}
	}
	each := func(k uint64, f func(r *rand.Rand) error) {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(seed, k))
			for !ended() {
				if err := f(r); err != nil {
					l.t.Error(err)
					return
				}
			}
		})
	}
	each(1, func(*rand.Rand) error { return l.small(100) })
	each(2, func(r *rand.Rand) error { return l.large(r, 4) })
	each(3, func(r *rand.Rand) error { return l.large(r, 4) })
	if l.kills {
		each(4, l.restarting)
		return &wg
	}
	each(4, func(*rand.Rand) error { return l.names() })
	each(5, l.calls)
	return &wg
}

// calls makes calls of one actor, which must run once each, in order.
func (l *load) calls(r *rand.Rand) error {
	start := r.IntN(1000)
	a, err := harness.CounterType.Spawn(l.ctx, mobula.V(start), mobula.Resources{CPU: mobula.NoCPU})
	if err != nil {
		return fmt.Errorf("actor: %w", err)
	}
	refs := make([]mobula.Ref[int], 50)
	for i := range refs {
		refs[i] = harness.CounterInc.Go(l.ctx, a, mobula.V(1))
	}
	got, err := mobula.GetAll(l.ctx, refs)
	if err != nil {
		return fmt.Errorf("calls: %w", err)
	}
	for i, v := range got {
		if v != start+i+1 {
			return fmt.Errorf("call %d gave %d, want %d", i, v, start+i+1)
		}
	}
	a.Release()
	return nil
}

// restarting makes calls that may run more than once, of an actor that may die.
func (l *load) restarting(r *rand.Rand) error {
	start := r.IntN(1000)
	a, err := harness.CounterType.Spawn(l.ctx, mobula.V(start), mobula.MaxRestarts(-1), mobula.MaxTaskRetries(-1))
	if err != nil {
		return fmt.Errorf("actor: %w", err)
	}
	refs := make([]mobula.Ref[int], 50)
	for i := range refs {
		refs[i] = harness.CounterPlus.Go(l.ctx, a, mobula.V(i))
	}
	got, err := mobula.GetAll(l.ctx, refs)
	if err != nil {
		return fmt.Errorf("calls of a restarting actor: %w", err)
	}
	for i, v := range got {
		if v != start+i {
			return fmt.Errorf("call %d gave %d, want %d", i, v, start+i)
		}
	}
	a.Release()
	return nil
}

// check looks at every live object once more.
func (l *load) check() {
	for i, ref := range l.big {
		v, err := ref.View(l.ctx)
		if err != nil {
			l.t.Errorf("object %d: %v", i, err)
			continue
		}
		xs, err := v.Value()
		if err != nil || len(xs) != l.n || xs[0] != float64(i) || xs[l.n-1] != float64(i) {
			l.t.Errorf("object %d holds %d elements, %v", i, len(xs), err)
		}
		if err := v.Close(); err != nil {
			l.t.Error(err)
		}
	}
}
