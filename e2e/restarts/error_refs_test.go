package restarts

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"runtime"
	"testing"

	"mobula"
	"mobula/e2e/harness"
)

// missing is an error with references in it.
type missing struct {
	Key  string
	Part mobula.Ref[[]byte]
	More map[string]mobula.Ref[float64]
}

func (m *missing) Error() string { return m.Key + " is missing" }

func init() { mobula.RegisterErrorType[*missing]("e2e/missing") }

// lacks makes a missing of something put and of a task's result, which nothing else refers to.
func lacks(ctx context.Context, size int) error {
	part, err := mobula.Put(ctx, make([]byte, size))
	if err != nil {
		return err
	}
	sum := harness.Add.Go(ctx, mobula.V(float64(size)), mobula.V(1.0))
	return fmt.Errorf("wrapped: %w", &missing{"part", part, map[string]mobula.Ref[float64]{"sum": sum}})
}

type lacker struct{}

var (
	lack       = mobula.Register1("e2e/lack", func(ctx context.Context, size int) (int, error) { return 0, lacks(ctx, size) })
	lackPanics = mobula.Register1("e2e/lack-panics", func(ctx context.Context, size int) (int, error) { panic(lacks(ctx, size)) })
	lackPassed = mobula.Register1("e2e/lack-passed", func(ctx context.Context, of []mobula.Ref[int]) (int, error) { return of[0].Get(ctx) })
	lackTaken  = mobula.Register1("e2e/lack-taken", func(_ context.Context, n int) (int, error) { return n, nil })
	lackStream = mobula.RegisterStream1("e2e/lack-stream", func(ctx context.Context, size int) iter.Seq2[int, error] {
		return func(yield func(int, error) bool) {
			if yield(1, nil) {
				yield(0, lacks(ctx, size))
			}
		}
	})
	lackerType = mobula.RegisterActor1("e2e/lacker", func(ctx context.Context, size int) (*lacker, error) {
		if size < 0 {
			return nil, lacks(ctx, -size)
		}
		return &lacker{}, nil
	})
	lackerCall = mobula.RegisterMethod1(lackerType, "Call", func(_ *lacker, ctx context.Context, size int) (int, error) { return 0, lacks(ctx, size) })
	lackerBack = mobula.RegisterMethod1(lackerType, "Back", func(_ *lacker, _ context.Context, m missing) (int, error) { return 0, &m })
)

// errorOf gives what a call fails with, of which nothing else is left.
func errorOf(t *testing.T, ctx context.Context, r mobula.Ref[int]) error {
	t.Helper()
	_, err := r.Get(ctx)
	if err == nil {
		t.Fatal("it did not fail")
	}
	r.Release()
	return err
}

// stillHas looks at what an error has references to, after a while, and again.
func stillHas(t *testing.T, ctx context.Context, what string, err error, size int) {
	t.Helper()
	for range 2 {
		runtime.GC()
		if _, err := harness.Add.Go(ctx, mobula.V(1.0), mobula.V(1.0)).Get(ctx); err != nil { // what was released was told before
			t.Fatal(err)
		}
		var m *missing
		if !errors.As(err, &m) || m.Key != "part" {
			t.Fatalf("%s: it is no *missing: %v", what, err)
		}
		if b, err := m.Part.Get(ctx); err != nil || len(b) != size {
			t.Errorf("%s: the part in it: %d bytes, %v", what, len(b), err)
		}
		if sum, err := m.More["sum"].Get(ctx); err != nil || sum != float64(size)+1 {
			t.Errorf("%s: the sum in it: %v, %v", what, sum, err)
		}
	}
	runtime.KeepAlive(err)
}

// empty waits until nothing is left of what the test made.
func empty(t *testing.T, ctx context.Context, c *mobula.Cluster) {
	t.Helper()
	harness.Eventually(t, ctx, "no object is left", func() bool {
		runtime.GC()
		l, err := c.ListObjects(ctx, mobula.Query{})
		return err == nil && l.Total == 0
	})
}

// What an error has references to lives as long as somebody has the error, or what failed with it.
func TestReferencesInErrorsLive(t *testing.T) {
	smallAndLarge(t, func(t *testing.T, ctx context.Context, c *mobula.Cluster, size int) {
		ctx = c.Context(ctx)
		referencesInErrors(t, ctx, c, size)
		empty(t, ctx, c)
	})
}

// smallAndLarge runs a test with inline objects and with stored ones, each on a node embedded and on one with worker processes.
func smallAndLarge(t *testing.T, f func(t *testing.T, ctx context.Context, c *mobula.Cluster, size int)) {
	for name, opts := range map[string][]mobula.StartOption{"embedded": nil, "process": {mobula.WithProcesses()}} {
		for _, size := range []int{100, harness.MiB} {
			t.Run(fmt.Sprint(name, size), func(t *testing.T) {
				ctx, cancel := harness.Limit(t)
				defer cancel()
				c, err := mobula.Start(ctx, append(opts, mobula.WithCPUs(2), mobula.WithDir(harness.TempDir(t)), mobula.WithLogger(harness.Quiet()))...)
				if err != nil {
					t.Fatal(err)
				}
				defer func() {
					if err := c.Close(context.WithoutCancel(ctx)); err != nil {
						t.Error(err)
					}
				}()
				f(t, ctx, c, size)
			})
		}
	}
}

func referencesInErrors(t *testing.T, ctx context.Context, c *mobula.Cluster, size int) {
	t.Helper()
	n := mobula.V(size)
	stillHas(t, ctx, "a task", errorOf(t, ctx, lack.Go(ctx, n)), size)
	stillHas(t, ctx, "one that panics", errorOf(t, ctx, lackPanics.Go(ctx, n)), size)
	stillHas(t, ctx, "its last attempt", errorOf(t, ctx, lack.Go(ctx, n, mobula.Retries(1), mobula.RetryExceptions())), size)
	failed := lack.Go(ctx, n)
	taken := lackTaken.Go(ctx, lackTaken.Go(ctx, failed))
	passed := lackPassed.Go(ctx, mobula.V([]mobula.Ref[int]{failed}))
	if _, _, err := mobula.Wait(ctx, []mobula.Ref[int]{taken, passed}, 2); err != nil {
		t.Fatal(err)
	}
	failed.Release()
	stillHas(t, ctx, "a task whose argument failed", errorOf(t, ctx, taken), size)
	stillHas(t, ctx, "a task that passes an error on", errorOf(t, ctx, passed), size)

	next, stop := iter.Pull2(lackStream.Go(ctx, n))
	defer stop()
	if item, err, ok := next(); !ok || err != nil {
		t.Fatalf("the item before: %v, %v", item, err)
	}
	_, err, _ := next()
	stillHas(t, ctx, "a stream", err, size)

	a, err := lackerType.Spawn(ctx, mobula.V(0), mobula.Named("e2e", "lacker"))
	if err != nil {
		t.Fatal(err)
	}
	stillHas(t, ctx, "an actor", errorOf(t, ctx, lackerCall.Go(ctx, a, n)), size)
	other, err := mobula.Connect(ctx, c.Address(), mobula.ConnectLogger(harness.Quiet()))
	if err != nil {
		t.Fatal(err)
	}
	fromAnotherJob(t, other.Context(ctx), size)
	if err := other.Close(ctx); err != nil {
		t.Error(err)
	}
	a.Release()
	unborn, err := lackerType.Spawn(ctx, mobula.V(-size))
	if err != nil {
		t.Fatal(err)
	}
	failed = lackerCall.Go(ctx, unborn, n)
	err = errorOf(t, ctx, failed)
	unborn.Release()
	stillHas(t, ctx, "a constructor", err, size)
}

// fromAnotherJob has an actor fail with references that the caller, of another job than the actor, has made.
func fromAnotherJob(t *testing.T, ctx context.Context, size int) {
	t.Helper()
	far, err := mobula.GetActor[lacker](ctx, "e2e", "lacker")
	if err != nil {
		t.Fatal(err)
	}
	var m *missing
	if !errors.As(lacks(ctx, size), &m) {
		t.Fatal("it is no *missing")
	}
	r := lackerBack.Go(ctx, far, mobula.V(*m))
	m.Part.Release()
	m.More["sum"].Release()
	stillHas(t, ctx, "an actor of another job", errorOf(t, ctx, r), size)
}

// The node that is killed and started again holds what errors have references to.
func TestReferencesInErrorsOutliveTheNode(t *testing.T) {
	ctx, cancel := harness.Limit(t)
	defer cancel()
	cfg := harness.NodeConfig{Dir: harness.TempDir(t), CPUs: 2, Store: 32 * harness.MiB, StoreDir: harness.TempDir(t)}
	p := harness.MustLaunch(t, cfg)
	c, ctx := harness.Connect(t, ctx, p)
	errorsOutlive(t, ctx, func() {
		p.Kill(t)
		harness.MustLaunch(t, cfg)
	})
	empty(t, ctx, c)
}

func errorsOutlive(t *testing.T, ctx context.Context, restart func()) {
	t.Helper()
	small, large := lack.Go(ctx, mobula.V(100)), lack.Go(ctx, mobula.V(harness.MiB))
	taken := lackTaken.Go(ctx, lack.Go(ctx, mobula.V(200)))
	next, stop := iter.Pull2(lackStream.Go(ctx, mobula.V(300)))
	defer stop()
	if _, err, _ := next(); err != nil {
		t.Fatal(err)
	}
	if _, _, err := mobula.Wait(ctx, []mobula.Ref[int]{small, large, taken}, 3); err != nil {
		t.Fatal(err)
	}
	restart()
	stillHas(t, ctx, "of small parts", errorOf(t, ctx, small), 100)
	stillHas(t, ctx, "of large parts", errorOf(t, ctx, large), harness.MiB)
	stillHas(t, ctx, "of an argument", errorOf(t, ctx, taken), 200)
	_, err, _ := next()
	stillHas(t, ctx, "of a stream", err, 300)
}
