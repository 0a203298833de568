package restarts

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"mobula"
	"mobula/e2e/harness"
	"mobula/internal/testkit"
)

// lifeTasks is how many tasks, and as many calls, the job of TestALongLife has; `make life` says 5,000,000.
var lifeTasks, _ = strconv.Atoi(os.Getenv("MOBULA_LIFE"))

const lifeTasksQuick = 10_000

// labour is an amount of work of each kind.
type labour struct{ tasks, calls, puts, streams int }

func labourOf(tasks int) labour { return labour{tasks, tasks, tasks / 5, tasks / 50} }

func (l labour) all() int { return l.tasks + l.calls + l.puts + l.streams }

const (
	lifeStart = 7  // of the counter that is called
	lifeItems = 5  // of a stream
	lifeLarge = 64 // every so many objects one is too large for a message
)

var lifeStream = mobula.RegisterStream1("e2e/life-stream", func(_ context.Context, from int) iter.Seq2[int, error] {
	return func(yield func(int, error) bool) {
		for i := range lifeItems {
			if !yield(from+i, nil) {
				return
			}
		}
	}
})

// life is a job that goes on. It keeps one object and one actor.
type life struct {
	counter mobula.ActorRef[harness.Counter]
	kept    mobula.Ref[[]float64]
	done    atomic.Int64 // pieces of work
}

func beginLife(t *testing.T, ctx context.Context) *life {
	t.Helper()
	l := &life{}
	var err error
	l.counter, err = harness.CounterType.Spawn(ctx, mobula.V(lifeStart), mobula.MaxRestarts(-1), mobula.MaxTaskRetries(-1))
	harness.Must(t, err)
	l.kept, err = mobula.Put(ctx, harness.Array(harness.MiB, 1))
	harness.Must(t, err)
	return l
}

// work does all of it, and holds each answer against what it must be. It keeps nothing.
func (l *life) work(ctx context.Context, of labour) error {
	g, ctx := errgroup.WithContext(ctx)
	each := func(what string, n int, f func(ctx context.Context, from, to int) error) {
		g.Go(func() error {
			for from := 0; from < n; from += 500 {
				to := min(from+500, n)
				if err := f(ctx, from, to); err != nil {
					return fmt.Errorf("%s %d to %d: %w", what, from, to, err)
				}
				l.done.Add(int64(to - from))
			}
			return nil
		})
	}
	each("tasks", of.tasks, func(ctx context.Context, from, to int) error {
		refs := make([]mobula.Ref[float64], 0, to-from)
		for i := from; i < to; i++ {
			refs = append(refs, harness.Add.Go(ctx, mobula.V(float64(i)), mobula.V(1.0), mobula.Retries(-1)))
		}
		return answered(ctx, refs, func(i int) float64 { return float64(from + i + 1) })
	})
	each("calls", of.calls, func(ctx context.Context, from, to int) error {
		refs := make([]mobula.Ref[int], 0, to-from)
		for i := from; i < to; i++ {
			refs = append(refs, harness.CounterPlus.Go(ctx, l.counter, mobula.V(i)))
		}
		return answered(ctx, refs, func(i int) int { return lifeStart + from + i })
	})
	each("objects", of.puts, func(ctx context.Context, from, to int) error {
		refs := make([]mobula.Ref[[]float64], 0, to-from)
		for i := from; i < to; i++ {
			ref, err := mobula.Put(ctx, harness.Array(lifeBytes(i), float64(i)))
			if err != nil {
				return err
			}
			refs = append(refs, ref)
		}
		for i, ref := range refs {
			v, err := ref.Get(ctx)
			if err != nil || !harness.Holds(v, lifeBytes(from+i), float64(from+i)) {
				return fmt.Errorf("object %d has %d numbers: %w", from+i, len(v), err)
			}
			ref.Release()
		}
		return nil
	})
	each("streams", of.streams, func(ctx context.Context, from, to int) error {
		for i := from; i < to; i++ {
			want := i
			for item, err := range lifeStream.Go(ctx, mobula.V(i), mobula.Retries(-1)) {
				if err != nil {
					return err
				}
				if v, err := item.Get(ctx); err != nil || v != want {
					return fmt.Errorf("stream %d gives %d, not %d: %w", i, v, want, err)
				}
				item.Release()
				want++
			}
			if want != i+lifeItems {
				return fmt.Errorf("stream %d has %d items, not %d", i, want-i, lifeItems)
			}
		}
		return nil
	})
	return g.Wait()
}

// lifeBytes is the size of an object.
func lifeBytes(i int) int {
	if i%lifeLarge == 0 {
		return 64 << 10
	}
	return 64
}

// answered waits for results, compares them, and lets go of them.
func answered[T comparable](ctx context.Context, refs []mobula.Ref[T], want func(i int) T) error {
	got, err := mobula.GetAll(ctx, refs)
	if err != nil {
		return err
	}
	for i, v := range got {
		if v != want(i) {
			return fmt.Errorf("answer %d is %v, not %v", i, v, want(i))
		}
		refs[i].Release()
	}
	return nil
}

// A job goes on and on: after all its work the node holds what it held after a tenth of it. Killed then, the node comes back with what the job keeps.
func TestALongLife(t *testing.T) {
	ctx, cancel, of := lifeOf(t)
	defer cancel()
	cfg := harness.NodeConfig{Dir: harness.TempDir(t), CPUs: 2, Store: 64 * harness.MiB, StoreDir: harness.TempDir(t)}
	p := harness.MustLaunch(t, cfg)
	_, ctx = harness.Connect(t, ctx, p)
	l := beginLife(t, ctx)
	began := time.Now()
	measure := func() footprint {
		return footprint{p.Heap(t), entries(t, p, "fd"), entries(t, p, "task"), bytesIn(t, cfg.Dir), bytesIn(t, cfg.StoreDir)}
	}
	var was footprint
	for tenth := range 10 {
		harness.Must(t, l.work(ctx, labourOf(of/10)))
		now := measure()
		t.Logf("%v, %d pieces of work: %v", time.Since(began).Round(time.Second), l.done.Load(), now)
		if tenth == 0 {
			was = now
			continue
		}
		// What the last work held goes within a moment, a leak stays.
		var grown error
		harness.Eventually(t, ctx, "the node holds what it held after a tenth of the work", func() bool {
			again := was.grown(measure())
			if again != nil && (grown == nil || again.Error() != grown.Error()) {
				t.Log(again)
			}
			grown = again
			return grown == nil
		})
	}
	p.Kill(t)
	again := time.Now()
	p = harness.MustLaunch(t, cfg)
	t.Logf("the node was up again after %v", time.Since(again).Round(time.Millisecond))
	if v, err := l.kept.Get(ctx); err != nil || !harness.Holds(v, harness.MiB, 1) {
		t.Errorf("the object that was kept has %d numbers: %v", len(v), err)
	}
	harness.Must(t, l.work(ctx, labour{tasks: 100, calls: 100, puts: 100, streams: 2}))
}

// grown tells what of a node that goes on has grown since it was f, by more than 10 % and 16 MiB of memory or disk.
func (f footprint) grown(now footprint) error {
	var es []error
	for _, x := range []struct {
		what           string
		was, is, spare int
	}{
		{"the heap", f.heap, now.heap, 16 * harness.MiB},
		{"descriptors", f.descriptors, now.descriptors, 16},
		{"threads", f.threads, now.threads, 16},
		{"the directory", f.disk, now.disk, 16 * harness.MiB},
		{"shared memory", f.shared, now.shared, 16 * harness.MiB},
	} {
		if x.is > x.was+max(x.was/10, x.spare) {
			es = append(es, fmt.Errorf("%s: %d, and %d before: it grows", x.what, x.is, x.was))
		}
	}
	return errors.Join(es...)
}

// The same job, a tenth of its work, while its node is killed again and again: every answer is what it must be.
func TestALongLifeUnderKills(t *testing.T) {
	ctx, cancel, of := lifeOf(t)
	defer cancel()
	kills := 5
	if lifeTasks > 0 {
		kills = 100
	}
	cfg := harness.NodeConfig{Dir: harness.TempDir(t), CPUs: 2, Store: 64 * harness.MiB, StoreDir: harness.TempDir(t)}
	p := harness.MustLaunch(t, cfg)
	_, ctx = harness.Connect(t, ctx, p)
	l, work := beginLife(t, ctx), labourOf(of/10)
	over := make(chan error, 1)
	go func() { over <- l.work(ctx, work) }()
	for k := range kills {
		harness.Eventually(t, ctx, "the job goes on", func() bool {
			return l.done.Load() >= int64(work.all()/(kills+1)*(k+1)) || len(over) > 0
		})
		p.Kill(t)
		p = harness.MustLaunch(t, cfg)
	}
	harness.Must(t, testkit.Receive(t, "the end of the work", over))
	if v, err := l.kept.Get(ctx); err != nil || !harness.Holds(v, harness.MiB, 1) {
		t.Errorf("the object that was kept has %d numbers: %v", len(v), err)
	}
}

// lifeOf is how many tasks the job has, with the bound of the test.
func lifeOf(t *testing.T) (context.Context, context.CancelFunc, int) {
	t.Helper()
	if lifeTasks == 0 {
		ctx, cancel := harness.Limit(t)
		return ctx, cancel, lifeTasksQuick
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	return ctx, cancel, lifeTasks
}
