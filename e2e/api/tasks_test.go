package api

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"mobula"
	"mobula/internal/testkit"
	"mobula/mobulatest"
)

var (
	errNope = errors.New("nope")

	e2eAdd  = mobula.Register2("e2e/api/add", func(_ context.Context, a, b float64) (float64, error) { return a + b, nil })
	e2eHold = mobula.Register2("e2e/hold", hold)
	e2eDive = mobula.Register1("e2e/dive", dive)
	e2ePeek = mobula.Register1("e2e/peek", func(ctx context.Context, in nestedRef) (string, error) {
		v, err := in.R.Get(ctx)
		return fmt.Sprintf("%T %v", in.R, v), err
	})
	e2eFail = mobula.Register1("e2e/fail", func(_ context.Context, log string) (int, error) {
		return 0, errors.Join(note(log, "x"), errNope)
	})
	e2eDie = mobula.Register2("e2e/die", func(_ context.Context, log string, times int) (int, error) {
		if err := note(log, "x"); err != nil {
			return 0, err
		}
		n, err := size(log)
		if err == nil && n <= times {
			err = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		}
		return n, err
	})
	e2ePanic = mobula.Register0("e2e/panic", func(context.Context) (int, error) { panic("e2e") })
	e2eBig   = mobula.Register1("e2e/big", func(_ context.Context, n int) ([]byte, error) { return make([]byte, n), nil })
	e2eLen   = mobula.Register1("e2e/len", func(_ context.Context, b []byte) (int, error) { return len(b), nil })
	e2eSpawn = mobula.Register1("e2e/spawn", func(ctx context.Context, dir string) (int, error) {
		child := e2eHold.Go(ctx, mobula.V(dir), mobula.V("child"))
		return child.Get(ctx)
	})
	e2eWho   = mobula.Register0("e2e/who", mobula.GetRuntimeContext)
	e2eItems = mobula.RegisterStream2("e2e/items", func(_ context.Context, log string, n int) iter.Seq2[int, error] {
		return func(yield func(int, error) bool) {
			for i := range n {
				if err := note(log, "x"); err != nil || !yield(i, nil) {
					return
				}
			}
		}
	})
)

func init() { mobula.RegisterError("e2e/nope", errNope) }

type nestedRef struct{ R mobula.Ref[float64] }

// note appends to a file that a test can read.
func note(path, text string) error {
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

func size(path string) (int, error) {
	info, err := os.Stat(path)
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	return int(info.Size()), nil
}

// hold says that it began, by a file of that name in dir, and runs until there is a file "go" or its context ends, which it says too.
func hold(ctx context.Context, dir, name string) (int, error) {
	if err := note(filepath.Join(dir, name+".began"), "x"); err != nil {
		return 0, err
	}
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for {
		if n, err := size(filepath.Join(dir, "go")); n > 0 || err != nil {
			return os.Getpid(), err
		}
		select {
		case <-ctx.Done():
			return 0, errors.Join(note(filepath.Join(dir, name+".cancelled"), "x"), ctx.Err())
		case <-tick.C:
		}
	}
}

func dive(ctx context.Context, depth int) (int, error) {
	if depth == 0 {
		return 0, nil
	}
	n, err := diveAgain.Go(ctx, mobula.V(depth-1)).Get(ctx)
	return n + 1, err
}

var diveAgain mobula.Func1[int, int]

func init() { diveAgain = e2eDive }

func exists(path string) func() bool {
	return func() bool { n, err := size(path); return err == nil && n > 0 }
}

// both runs a test with tasks in goroutines and in processes.
func both(t *testing.T, f func(ctx context.Context, t *testing.T), opts ...mobula.StartOption) {
	for name, more := range map[string][]mobula.StartOption{"embedded": {mobula.WithCPUs(2)}, "processes": {mobula.WithCPUs(2), mobula.WithProcesses()}} {
		t.Run(name, func(t *testing.T) {
			t.TempDir() // made before the runtime, removed after it: a task may still write when its caller has the error
			f(mobulatest.Context(t, slices.Concat(opts, more)...), t)
		})
	}
}

func get[T comparable](ctx context.Context, t *testing.T, r mobula.Ref[T], want T) {
	t.Helper()
	if v, err := r.Get(ctx); err != nil || v != want {
		t.Errorf("got %v, %v, want %v", v, err, want)
	}
}

func TestC1SubmitDoesNotBlock(t *testing.T) {
	both(t, func(ctx context.Context, t *testing.T) {
		dir := t.TempDir()
		called := make(chan mobula.Ref[int], 1)
		go func() { called <- e2eHold.Go(ctx, mobula.V(dir), mobula.V("t")) }()
		r := testkit.Receive(t, "the call's return, before the task is let go", called)
		if err := note(filepath.Join(dir, "go"), "x"); err != nil {
			t.Fatal(err)
		}
		if _, err := r.Get(ctx); err != nil {
			t.Error(err)
		}
	})
}

func TestC2Dataflow(t *testing.T) {
	both(t, func(ctx context.Context, t *testing.T) {
		x := e2eAdd.Go(ctx, mobula.V(1.0), mobula.V(2.0))
		get(ctx, t, e2eAdd.Go(ctx, x, mobula.V(3.0)), 6)
		get(ctx, t, e2ePeek.Go(ctx, mobula.V(nestedRef{x})), "mobula.Ref[float64] 3")
		large := e2eBig.Go(ctx, mobula.V(300<<10))
		get(ctx, t, e2eLen.Go(ctx, large), 300<<10)
		get(ctx, t, e2eLen.Go(ctx, mobula.V(make([]byte, 200<<10))), 200<<10)
	})
}

func TestC3WaitGivesTheFastest(t *testing.T) {
	both(t, func(ctx context.Context, t *testing.T) {
		slow, fast := t.TempDir(), t.TempDir()
		if err := note(filepath.Join(fast, "go"), "x"); err != nil {
			t.Fatal(err)
		}
		refs := []mobula.Ref[int]{e2eHold.Go(ctx, mobula.V(slow), mobula.V("s")), e2eHold.Go(ctx, mobula.V(fast), mobula.V("f"))}
		ready, rest, err := mobula.Wait(ctx, refs, 1)
		if err != nil || len(ready) != 1 || ready[0] != refs[1] || len(rest) != 1 {
			t.Errorf("ready %v, rest %v, %v", ready, rest, err)
		}
		short, cancel := context.WithTimeout(ctx, 5*time.Millisecond)
		defer cancel()
		if _, _, err := mobula.Wait(short, refs, 2); !errors.Is(err, mobula.ErrGetTimeout) {
			t.Errorf("at the deadline: %v", err)
		}
		if _, err := refs[0].Get(short); !errors.Is(err, mobula.ErrGetTimeout) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("get at the deadline: %v", err)
		}
		if err := note(filepath.Join(slow, "go"), "x"); err != nil {
			t.Fatal(err)
		}
		if _, err := refs[0].Get(ctx); err != nil {
			t.Errorf("the reference is not valid any more: %v", err)
		}
	})
}

func TestC7ResultsStandAlone(t *testing.T) {
	both(t, func(ctx context.Context, t *testing.T) {
		refs := e2eMany.Go(ctx, 100, mobula.V(30<<10))
		for i, r := range refs[:50] {
			r.Release()
			v, err := refs[50+i].Get(ctx)
			if err != nil || len(v) != 30<<10+50+i {
				t.Fatalf("result %d: %d bytes, %v", 50+i, len(v), err)
			}
		}
	})
}

var e2eMany = mobula.RegisterN1("e2e/many", func(ctx context.Context, size int) ([][]byte, error) {
	rc, err := mobula.GetRuntimeContext(ctx)
	out := make([][]byte, rc.Returns)
	for i := range out {
		out[i] = make([]byte, size+i)
	}
	return out, err
})

func TestC8StreamsAreBounded(t *testing.T) {
	both(t, func(ctx context.Context, t *testing.T) {
		log := filepath.Join(t.TempDir(), "log")
		const n, ahead = 50, 3
		taken := 0
		for r, err := range e2eItems.Go(ctx, mobula.V(log), mobula.V(n), mobula.Backpressure(ahead)) {
			if err != nil {
				t.Fatal(err)
			}
			get(ctx, t, r, taken)
			taken++
			// One more is being made, and one may be on its way to the producer's count.
			if made, err := size(log); err != nil || made > taken+ahead+2 {
				t.Fatalf("%d items were made when %d were taken, %v", made, taken, err)
			}
		}
		if taken != n {
			t.Errorf("%d items, want %d", taken, n)
		}
	})
}

func TestC9ResourcesAreNeverOvercommitted(t *testing.T) {
	both(t, func(ctx context.Context, t *testing.T) {
		dir := t.TempDir()
		began := func(n int) int {
			count := 0
			for i := range n {
				if exists(filepath.Join(dir, fmt.Sprint(i, ".began")))() {
					count++
				}
			}
			return count
		}
		refs := make([]mobula.Ref[int], 6)
		for i := range refs {
			refs[i] = e2eHold.Go(ctx, mobula.V(dir), mobula.V(fmt.Sprint(i)), mobula.Resources{CPU: .5, Custom: map[string]float64{"seat": 1}})
		}
		testkit.Eventually(t, "three began", func() bool { return began(6) >= 3 })
		if n := began(6); n > 3 {
			t.Errorf("%d tasks run with 3 seats", n)
		}
		if err := note(filepath.Join(dir, "go"), "x"); err != nil {
			t.Fatal(err)
		}
		if _, err := mobula.GetAll(ctx, refs); err != nil {
			t.Error(err)
		}
		if _, err := e2eWho.Go(ctx, mobula.Resources{Custom: map[string]float64{"seat": 4}}).Get(ctx); !errors.Is(err, mobula.ErrUnschedulable) || !strings.Contains(err.Error(), "seat") {
			t.Errorf("more seats than there are: %v", err)
		}
	}, mobula.WithResource("seat", 3))
}

// What runs at once is what the CPUs add up to, in whole ones and in halves.
func TestC9CPUsAddUp(t *testing.T) {
	both4 := []mobula.StartOption{mobula.WithCPUs(4)}
	for name, opts := range map[string][]mobula.StartOption{"embedded": both4, "processes": append(both4, mobula.WithProcesses())} {
		for _, c := range []struct {
			cpu float64
			run int
		}{{1, 4}, {.5, 8}, {1.5, 2}} {
			t.Run(fmt.Sprint(name, " of ", c.cpu), func(t *testing.T) {
				dir := t.TempDir()
				cluster := mobulatest.Start(t, opts...)
				ctx := cluster.Context(t.Context())
				refs := make([]mobula.Ref[int], c.run+4)
				for i := range refs {
					refs[i] = e2eHold.Go(ctx, mobula.V(dir), mobula.V(fmt.Sprint(i)), mobula.Resources{CPU: c.cpu})
				}
				began := func() (n int) {
					for i := range refs {
						if exists(filepath.Join(dir, fmt.Sprint(i, ".began")))() {
							n++
						}
					}
					return n
				}
				testkit.Eventually(t, fmt.Sprint(c.run, " run"), func() bool { return began() >= c.run })
				p, err := cluster.ListTasks(ctx, mobula.Query{Filters: []mobula.Filter{{Field: "state", Value: "RUNNING"}}})
				if n := began(); err != nil || n != c.run || p.Total > c.run {
					t.Errorf("%d began and %d run on 4 CPUs, want %d, %v", n, p.Total, c.run, err)
				}
				if err := note(filepath.Join(dir, "go"), "x"); err != nil {
					t.Fatal(err)
				}
				if _, err := mobula.GetAll(ctx, refs); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

func TestC11Retries(t *testing.T) {
	both(t, func(ctx context.Context, t *testing.T) {
		log := filepath.Join(t.TempDir(), "log")
		_, err := e2eFail.Go(ctx, mobula.V(log)).Get(ctx)
		var te *mobula.TaskError
		if !errors.Is(err, errNope) || !errors.Is(err, mobula.ErrTaskFailed) || !errors.As(err, &te) {
			t.Errorf("got %v", err)
		}
		if n, err := size(log); n != 1 || err != nil {
			t.Errorf("an error of the function was tried %d times, %v", n, err)
		}
		again := filepath.Join(t.TempDir(), "log")
		if _, err := e2eFail.Go(ctx, mobula.V(again), mobula.RetryExceptions(), mobula.Retries(2)).Get(ctx); !errors.Is(err, errNope) {
			t.Errorf("got %v", err)
		}
		if n, err := size(again); n != 3 || err != nil {
			t.Errorf("with two retries it was tried %d times, %v", n, err)
		}
	})
}

func TestC11AKilledWorkerIsRetried(t *testing.T) {
	ctx := mobulatest.Context(t, mobula.WithProcesses(), mobula.WithCPUs(2))
	log := filepath.Join(t.TempDir(), "log")
	get(ctx, t, e2eDie.Go(ctx, mobula.V(log), mobula.V(2)), 3)
	forever := filepath.Join(t.TempDir(), "log")
	if _, err := e2eDie.Go(ctx, mobula.V(forever), mobula.V(1000)).Get(ctx); !errors.Is(err, mobula.ErrWorkerCrashed) {
		t.Errorf("one that always dies: %v", err)
	}
	if n, err := size(forever); n != 4 || err != nil {
		t.Errorf("it was tried %d times, want 4, %v", n, err)
	}
}

func TestC13Cancel(t *testing.T) {
	both(t, func(ctx context.Context, t *testing.T) {
		dir := t.TempDir()
		run := []mobula.Ref[int]{e2eHold.Go(ctx, mobula.V(dir), mobula.V("a")), e2eHold.Go(ctx, mobula.V(dir), mobula.V("b"))}
		testkit.Eventually(t, "both run", func() bool { return exists(filepath.Join(dir, "a.began"))() && exists(filepath.Join(dir, "b.began"))() })
		queued := e2eHold.Go(ctx, mobula.V(dir), mobula.V("queued"))
		// The queued one first: a running one that ends gives its CPU to whatever waits, until that is cancelled too.
		all := append([]mobula.Ref[int]{queued}, run...)
		for _, r := range all {
			if err := r.Cancel(ctx); err != nil {
				t.Fatal(err)
			}
		}
		for _, r := range all { // none of which ends by itself
			if _, err := r.Get(ctx); !errors.Is(err, mobula.ErrCancelled) || !errors.Is(err, context.Canceled) {
				t.Errorf("got %v", err)
			}
		}
		testkit.Eventually(t, "the running ones saw it", exists(filepath.Join(dir, "a.cancelled")))
		if exists(filepath.Join(dir, "queued.began"))() {
			t.Error("a cancelled task was started")
		}
	})
}

func TestC13CancelRecursive(t *testing.T) {
	both(t, func(ctx context.Context, t *testing.T) {
		dir := t.TempDir()
		parent := e2eSpawn.Go(ctx, mobula.V(dir))
		testkit.Eventually(t, "the child runs", exists(filepath.Join(dir, "child.began")))
		if err := parent.Cancel(ctx, mobula.Recursive()); err != nil {
			t.Fatal(err)
		}
		if _, err := parent.Get(ctx); !errors.Is(err, mobula.ErrCancelled) {
			t.Errorf("got %v", err)
		}
		testkit.Eventually(t, "the child saw it", exists(filepath.Join(dir, "child.cancelled")))
	})
}

func TestDeadlines(t *testing.T) {
	both(t, func(ctx context.Context, t *testing.T) {
		dir := t.TempDir()
		if _, err := e2eHold.Go(ctx, mobula.V(dir), mobula.V("t"), mobula.Timeout(50*time.Millisecond)).Get(ctx); !errors.Is(err, mobula.ErrDeadline) {
			t.Errorf("an option: %v", err)
		}
		short, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
		defer cancel()
		if _, err := e2eHold.Go(short, mobula.V(dir), mobula.V("u")).Get(ctx); !errors.Is(err, mobula.ErrDeadline) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("of the context: %v", err)
		}
	})
}

func TestC15NestedTasksDoNotDeadlock(t *testing.T) {
	for name, opts := range map[string][]mobula.StartOption{"embedded": {mobula.WithCPUs(1)}, "processes": {mobula.WithCPUs(1), mobula.WithProcesses()}} {
		t.Run(name, func(t *testing.T) {
			ctx := mobulatest.Context(t, opts...)
			get(ctx, t, e2eDive.Go(ctx, mobula.V(10)), 10)
		})
	}
}

func TestC16Errors(t *testing.T) {
	both(t, func(ctx context.Context, t *testing.T) {
		if _, err := e2ePanic.Go(ctx).Get(ctx); !errors.Is(err, mobula.ErrPanic) || !errors.Is(err, mobula.ErrTaskFailed) || !strings.Contains(err.Error(), "e2e") {
			t.Errorf("a panic: %v", err)
		}
		if _, err := e2eBig.Go(ctx, mobula.V(80<<20)).Get(ctx); !errors.Is(err, mobula.ErrObjectTooLarge) {
			t.Errorf("a result larger than the store: %v", err)
		}
		if _, err := mobula.Put(ctx, make([]byte, 80<<20)); !errors.Is(err, mobula.ErrObjectTooLarge) {
			t.Errorf("a put larger than the store: %v", err)
		}
		if _, err := e2eChan.Go(ctx).Get(ctx); !errors.Is(err, mobula.ErrNotEncodable) || !strings.Contains(err.Error(), "chan int") {
			t.Errorf("a result that cannot be encoded: %v", err)
		}
		failed := e2ePanic.Go(ctx)
		if _, err := e2eAdd.Go(ctx, mobula.V(1.0), e2eFromInt.Go(ctx, failed)).Get(ctx); !errors.Is(err, mobula.ErrPanic) {
			t.Errorf("a failed argument's error is lost: %v", err)
		}
	})
}

var e2eChan = mobula.Register0("e2e/chan", func(context.Context) (struct{ C chan int }, error) { return struct{ C chan int }{}, nil })

var e2eFromInt = mobula.Register1("e2e/float", func(_ context.Context, n int) (float64, error) { return float64(n), nil })

func TestC19RuntimeContext(t *testing.T) {
	both(t, func(ctx context.Context, t *testing.T) {
		driver, err := mobula.GetRuntimeContext(ctx)
		if err != nil {
			t.Fatal(err)
		}
		task, err := e2eWho.Go(ctx).Get(ctx)
		if err != nil || task.Job != driver.Job || task.Node != driver.Node || task.Node == "" || task.Task == driver.Task || task.Function != "e2e/who" {
			t.Errorf("driver %+v, task %+v, %v", driver, task, err)
		}
		a := spawn(ctx, t, 0)
		call, err := tallyWho.Go(ctx, a).Get(ctx)
		if err != nil || call.Actor != a.ID() || call.Job != driver.Job || call.Task == task.Task || task.Actor != "" {
			t.Errorf("actor %s, its call %+v, %v", a.ID(), call, err)
		}
	})
}

func TestC21SeveralClustersInOneProcess(t *testing.T) {
	a, b := mobulatest.Start(t), mobulatest.Start(t)
	actx, bctx := a.Context(t.Context()), b.Context(t.Context())
	x, y := e2eAdd.Go(actx, mobula.V(1.0), mobula.V(1.0)), e2eAdd.Go(bctx, mobula.V(2.0), mobula.V(2.0))
	get(bctx, t, x, 2) // a reference knows its own cluster
	get(actx, t, y, 4)
	if _, err := e2eAdd.Go(actx, y, mobula.V(1.0)).Get(actx); !errors.Is(err, mobula.ErrInvalid) {
		t.Errorf("a reference of another cluster: %v", err)
	}
	if err := a.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := e2eAdd.Go(actx, mobula.V(1.0), mobula.V(1.0)).Get(actx); !errors.Is(err, mobula.ErrShutdown) {
		t.Errorf("after close: %v", err)
	}
	get(bctx, t, e2eAdd.Go(bctx, y, mobula.V(1.0)), 5)
}

func TestManyTasks(t *testing.T) {
	both(t, func(ctx context.Context, t *testing.T) {
		var failed atomic.Int32
		refs := make([]mobula.Ref[float64], 20_000)
		for i := range refs {
			refs[i] = e2eAdd.Go(ctx, mobula.V(float64(i)), mobula.V(1.0))
		}
		got, err := mobula.GetAll(ctx, refs)
		if err != nil {
			t.Fatal(err)
		}
		for i, v := range got {
			if v != float64(i+1) {
				failed.Add(1)
			}
		}
		if n := failed.Load(); n > 0 {
			t.Errorf("%d results are wrong", n)
		}
	})
}
