package spec

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"weak"

	"pgregory.net/rapid"

	"mobula/graph/order"
	"mobula/internal/errs"
	"mobula/internal/testkit"
)

// onBoth runs a test with the executors that are of this process.
func onBoth(t *testing.T, test func(t *testing.T, x Executor)) {
	t.Run("sync", func(t *testing.T) { test(t, Sync()) })
	t.Run("threads", func(t *testing.T) { test(t, Threads(3)) })
}

func TestSyncRunsInTheStaticOrder(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 60).Draw(t, "tasks")
		g, tasks := New(), make(order.Tasks, n)
		keys := make([]Key, n)
		var ran []int
		for i := range n {
			keys[i] = K("t", i)
			tasks[i].Name = keys[i].String()
			var deps []Key
			if i > 0 {
				tasks[i].Deps = rapid.SliceOfN(rapid.Int32Range(0, int32(i-1)), 0, 3).Draw(t, "deps")
			}
			for _, d := range tasks[i].Deps {
				deps = append(deps, keys[d])
			}
			g.Task(keys[i], func([]int) int { ran = append(ran, i); return i }, deps)
		}
		want, err := order.Of(tasks)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Get[[]int](t.Context(), Sync(), g, rapid.Permutation(keys).Draw(t, "wanted")); err != nil {
			t.Fatal(err)
		}
		for place, i := range ran {
			if int(want[i]) != place {
				t.Fatalf("task %d ran as number %d, its place is %d", i, place, want[i])
			}
		}
		if len(ran) != n {
			t.Fatalf("%d of %d tasks ran", len(ran), n)
		}
	})
}

func TestAHigherPriorityRunsFirst(t *testing.T) {
	g := New()
	var ran []string
	task := func(name string, priority int) Key {
		k := g.Task(K(name), func() int { ran = append(ran, name); return 0 })
		g.Annotate(Annotations{Priority: priority}, k)
		return k
	}
	keys := []Key{task("a", 0), task("b", -1), task("c", 2), task("d", 1)}
	if _, err := Get[[]int](t.Context(), Sync(), g, keys); err != nil || !slices.Equal(ran, []string{"c", "d", "a", "b"}) {
		t.Errorf("ran %v, %v", ran, err)
	}
}

// Of a chain two results are alive at once: what a task takes and what it gives.
func TestAResultLivesAsLongAsItIsNeeded(t *testing.T) {
	type result struct{ n [64]int }
	onBoth(t, func(t *testing.T, x Executor) {
		var mu sync.Mutex
		var made []weak.Pointer[result]
		most := 0
		link := func(before *result) *result {
			runtime.GC()
			mu.Lock()
			defer mu.Unlock()
			alive := 1
			for _, p := range made {
				if p.Value() != nil {
					alive++
				}
			}
			most = max(most, alive)
			r := new(result)
			if before != nil {
				r.n[0] = before.n[0] + 1
			}
			made = append(made, weak.Make(r))
			return r
		}
		g := New()
		at := g.Task(K("link", 0), link, nil)
		for i := range 49 {
			at = g.Task(K("link", i+1), link, at)
		}
		got, err := Get[*result](t.Context(), x, g, at)
		if err != nil || got.n[0] != 49 || len(made) != 50 || most > 3 { // a goroutine that has just ended may hold one more
			t.Errorf("%d results alive at once, of %d; %v", most, len(made), err)
		}
	})
}

func TestAFailureIsTheTasksOwnAndEndsTheRun(t *testing.T) {
	boom := errors.New("boom")
	onBoth(t, func(t *testing.T, x Executor) {
		g := New()
		var ran atomic.Int32
		bad := g.Task(K("bad"), func() (int, error) { return 0, fmt.Errorf("so: %w", boom) })
		mid := g.Task(K("mid"), func(x int) int { ran.Add(1); return x }, bad)
		top := g.Task(K("top"), func(x int) int { ran.Add(1); return x }, mid)
		_, err := Get[[]int](t.Context(), x, g, []Key{top, mid})
		if e, ok := errors.AsType[*TaskError](err); !ok || e.Key != bad || !errors.Is(err, boom) || ran.Load() != 0 {
			t.Errorf("got %v, %d more ran", err, ran.Load())
		}
	})
}

func TestAPanicIsAnErrorWithItsStack(t *testing.T) {
	onBoth(t, func(t *testing.T, x Executor) {
		g := New()
		cause := errors.New("cause")
		errs.RegisterSentinel("spec/cause/"+t.Name(), cause)
		_, err := Get[int](t.Context(), x, g, g.Task(K("x"), func() int { panic(cause) }))
		e, ok := errors.AsType[*errs.Error](err)
		if !ok || e.Stack == "" || !errors.Is(err, errs.ErrPanic) || !errors.Is(err, errs.ErrTaskFailed) || !errors.Is(err, cause) {
			t.Errorf("got %v", err)
		}
	})
}

func TestAGoroutineThatEndsItselfIsAnError(t *testing.T) {
	g := New()
	_, err := Get[int](t.Context(), Threads(1), g, g.Task(K("x"), func() int { runtime.Goexit(); return 0 }))
	if !errors.Is(err, errs.ErrPanic) {
		t.Errorf("got %v", err)
	}
}

func TestACancelledRunWaitsForItsTasks(t *testing.T) {
	cause := errors.New("enough")
	onBoth(t, func(t *testing.T, x Executor) {
		ctx, cancel := context.WithCancelCause(t.Context())
		defer cancel(nil)
		g := New()
		over := false
		long := g.Task(K("long"), func(ctx context.Context) (int, error) {
			cancel(cause)
			<-ctx.Done()
			over = true
			return 0, ctx.Err()
		})
		_, err := Get[int](ctx, x, g, g.Task(K("x"), inc, long))
		if !errors.Is(err, cause) || !over {
			t.Errorf("got %v, the task was over: %v", err, over)
		}
		if _, err := Get[int](ctx, x, g, g.Task(K("y"), inc, 1)); !errors.Is(err, cause) {
			t.Errorf("a context that has ended already: %v", err)
		}
	})
}

func TestThreadsRunAtOnceAsManyAsMay(t *testing.T) {
	const n = 3
	g := New()
	var now, most atomic.Int32
	full := make(chan struct{})
	var once sync.Once
	var keys []Key
	for i := range 30 {
		keys = append(keys, g.Task(K("t", i), func() int {
			if k := now.Add(1); k > most.Load() {
				most.Store(k)
				if k == n {
					once.Do(func() { close(full) })
				}
			}
			<-full // until n run at once
			now.Add(-1)
			return 0
		}))
	}
	if _, err := Get[[]int](t.Context(), Threads(n), g, keys); err != nil || most.Load() != n {
		t.Errorf("%d ran at once, %v", most.Load(), err)
	}
}

func TestThreadsKeepWithinTheirResources(t *testing.T) {
	g := New()
	var cpus, tapes, tasks atomic.Int32 // cpus in halves
	var over atomic.Bool
	var keys []Key
	for i := range 200 {
		cpu, tape := int32(1+i%4), int32(i%3)
		k := g.Task(K("t", i), func() int {
			if cpus.Add(cpu) > 4 || tapes.Add(tape) > 2 {
				over.Store(true)
			}
			runtime.Gosched()
			cpus.Add(-cpu)
			tapes.Add(-tape)
			tasks.Add(1)
			return 0
		})
		g.Annotate(Annotations{Resources: map[string]float64{"CPU": float64(cpu) / 2, "tape": float64(tape), "elsewhere": 9}}, k)
		keys = append(keys, k)
	}
	if _, err := Get[[]int](t.Context(), Threads(2, Resource("tape", 2)), g, keys); err != nil || over.Load() || tasks.Load() != 200 {
		t.Errorf("%d tasks ran, too many at once: %v, %v", tasks.Load(), over.Load(), err)
	}
	much := g.Task(K("much"), inc, 1)
	g.Annotate(Annotations{Resources: map[string]float64{"tape": 2.5}}, much)
	_, err := Get[int](t.Context(), Threads(2, Resource("tape", 2)), g, much)
	if e, ok := errors.AsType[*TaskError](err); !ok || e.Key != much || !errors.Is(err, errs.ErrUnschedulable) {
		t.Errorf("more than there is: %v", err)
	}
}

func TestATaskRunsAgainAfterAnError(t *testing.T) {
	onBoth(t, func(t *testing.T, x Executor) {
		g := New()
		tries := 0
		flaky := g.Task(K("flaky"), func() (int, error) {
			if tries++; tries == 2 {
				panic("no")
			} else if tries < 4 {
				return 0, errors.New("no")
			}
			return tries, nil
		})
		g.Annotate(Annotations{Retries: 3}, flaky)
		if n, err := Get[int](t.Context(), x, g, flaky); n != 4 || err != nil {
			t.Errorf("got %d, %v", n, err)
		}
		g.Annotate(Annotations{Retries: 1}, flaky)
		tries = 0
		if n, err := Get[int](t.Context(), x, g, flaky); err == nil || tries != 2 {
			t.Errorf("got %d, %v, after %d tries", n, err, tries)
		}
	})
}
