package faults

import (
	"context"
	"errors"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mobula"
	"mobula/e2e/harness"
	"mobula/internal/node"
	"mobula/internal/testkit"
)

// shaky is an actor whose methods panic when they have changed it by half.
type shaky struct {
	n    int
	hand mobula.ActorRef[shaky]
}

func (s *shaky) Add(_ context.Context, by int) (int, error) { s.n += by; return s.n, nil }

func (s *shaky) Bad(_ context.Context, by int) (int, error) {
	s.n += by
	panic("half way")
}

// Once panics unless a file says that it has done so.
func (s *shaky) Once(ctx context.Context, path string) (int, error) {
	if _, err := os.Stat(path); err == nil {
		return s.Add(ctx, 1)
	}
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		return 0, err
	}
	return s.Bad(ctx, 1000)
}

// Hold says in a file that it runs, and runs until its context ends.
func (s *shaky) Hold(ctx context.Context, path string) (int, error) {
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		return 0, err
	}
	<-ctx.Done()
	return 0, nil
}

func (s *shaky) Scribble(_ context.Context, xs []float64) (int, error) {
	s.n += 1000
	xs[0] = 1
	return s.n, nil
}

func (s *shaky) Count(_ context.Context) iter.Seq2[int, error] {
	return func(yield func(int, error) bool) {
		s.n += 1000
		if yield(1, nil) && yield(2, nil) {
			panic("half way through a stream")
		}
	}
}

// Hire makes a child whose panics are the actor's own failures.
func (s *shaky) Hire(ctx context.Context, start int) (mobula.ActorRef[shaky], error) {
	var err error
	s.hand, err = shakyType.Spawn(ctx, mobula.V(start), mobula.MaxRestarts(5), mobula.OnPanic(mobula.PanicEscalate))
	return s.hand, err
}

func newShaky(_ context.Context, start int) (*shaky, error) {
	if start < 0 {
		panic("it cannot start")
	}
	return &shaky{n: start}, nil
}

var (
	shakyType     = mobula.RegisterActor1("e2e/shaky", newShaky)
	shakyAdd      = mobula.RegisterMethod1(shakyType, "Add", (*shaky).Add)
	shakyBad      = mobula.RegisterMethod1(shakyType, "Bad", (*shaky).Bad)
	shakyOnce     = mobula.RegisterMethod1(shakyType, "Once", (*shaky).Once)
	shakyHold     = mobula.RegisterMethod1(shakyType, "Hold", (*shaky).Hold)
	shakyScribble = mobula.RegisterMethod1(shakyType, "Scribble", (*shaky).Scribble)
	shakyCount    = mobula.RegisterStreamMethod0(shakyType, "Count", (*shaky).Count)
	shakyHire     mobula.Method1[shaky, int, mobula.ActorRef[shaky]]
)

func init() { shakyHire = mobula.RegisterMethod1(shakyType, "Hire", (*shaky).Hire) }

// panicking runs a scenario in each mode: in the program's own process, in worker processes, on a node of its own, and on another node
// of a cluster.
func panicking(t *testing.T, f func(t *testing.T, ctx context.Context, spawn func(start int, opts ...mobula.ActorOption) mobula.ActorRef[shaky])) {
	run := func(t *testing.T, ctx context.Context, where ...mobula.ActorOption) {
		f(t, ctx, func(start int, opts ...mobula.ActorOption) mobula.ActorRef[shaky] {
			t.Helper()
			a, err := shakyType.Spawn(ctx, mobula.V(start), append(opts, where...)...)
			harness.Must(t, err)
			t.Cleanup(a.Release)
			return a
		})
	}
	harness.BothModes(t, node.Config{CPUs: 4, StoreBytes: 32 << 20}, func(t *testing.T, ctx context.Context, _ *node.Node) { run(t, ctx) })
	t.Run("node", func(t *testing.T) {
		ctx, cancel := harness.Limit(t)
		defer cancel()
		p := harness.MustLaunch(t, harness.NodeConfig{Dir: harness.TempDir(t), CPUs: 4, Store: 32 * harness.MiB, StoreDir: harness.TempDir(t)})
		_, ctx = harness.Connect(t, ctx, p)
		run(t, ctx)
	})
	t.Run("another node", func(t *testing.T) {
		nodes := harness.StartNodes(t, 2, 4)
		ctx, _ := harness.ConnectTo(t, nodes[0])
		run(t, ctx, mobula.OnNode("2"))
	})
}

// wantPanic fails unless an error is that of a call that panicked, with the stack.
func wantPanic(t *testing.T, what string, err error, text string) {
	t.Helper()
	var te *mobula.TaskError
	if !errors.Is(err, mobula.ErrPanic) || errors.Is(err, mobula.ErrActorDied) || errors.Is(err, mobula.ErrActorUnavailable) || !errors.As(err, &te) ||
		!strings.Contains(err.Error(), text) || !strings.Contains(te.Stack, "shaky") {
		t.Errorf("%s: got %v, want its panic with the stack", what, err)
	}
}

func add(t *testing.T, ctx context.Context, a mobula.ActorRef[shaky], by, want int) {
	t.Helper()
	if n, err := shakyAdd.Go(ctx, a, mobula.V(by)).Get(ctx); err != nil || n != want {
		t.Errorf("got %d, %v, want %d", n, err, want)
	}
}

func TestAPanicIsAFailureOfTheActor(t *testing.T) {
	panicking(t, func(t *testing.T, ctx context.Context, spawn func(int, ...mobula.ActorOption) mobula.ActorRef[shaky]) {
		neighbour := spawn(70)
		add(t, ctx, neighbour, 7, 77)

		a := spawn(1, mobula.MaxRestarts(3))
		bad := shakyBad.Go(ctx, a, mobula.V(1000))
		behind := shakyAdd.Go(ctx, a, mobula.V(1)) // it waits for the next instance
		_, err := bad.Get(ctx)
		wantPanic(t, "the call that panics", err, "half way")
		if n, err := behind.Get(ctx); err != nil || n != 2 {
			t.Errorf("the call behind it: %d, %v, want 2: that of a new instance", n, err)
		}
		xs, err := mobula.Put(ctx, make([]float64, 100_000))
		harness.Must(t, err)
		_, err = shakyScribble.Go(ctx, a, xs).Get(ctx)
		wantPanic(t, "a write to a read-only value", err, "read-only")
		add(t, ctx, a, 1, 2)
		var got []int
		for r, err := range shakyCount.Go(ctx, a) {
			if err != nil {
				wantPanic(t, "a stream", err, "half way through")
				break
			}
			n, err := r.Get(ctx)
			harness.Must(t, err)
			got = append(got, n)
		}
		if len(got) != 2 {
			t.Errorf("the stream gave %v before its panic", got)
		}
		add(t, ctx, a, 1, 2)
		_, err = shakyBad.Go(ctx, a, mobula.V(1)).Get(ctx)
		wantPanic(t, "the panic beyond its restarts", err, "half way")
		_, err = shakyAdd.Go(ctx, a, mobula.V(1)).Get(ctx)
		if !errors.Is(err, mobula.ErrActorDied) || !errors.Is(err, mobula.ErrPanic) || !strings.Contains(err.Error(), "after 3 of 3 restarts") {
			t.Errorf("a call after it: %v", err)
		}

		apart := spawn(1, mobula.Isolated(), mobula.MaxRestarts(1))
		_, err = shakyBad.Go(ctx, apart, mobula.V(1)).Get(ctx)
		wantPanic(t, "the panic of an actor in a process of its own", err, "half way")
		add(t, ctx, apart, 1, 2)

		mortal := spawn(1)
		_, err = shakyBad.Go(ctx, mortal, mobula.V(1)).Get(ctx)
		wantPanic(t, "the panic of an actor without restarts", err, "half way")
		if _, err = shakyAdd.Go(ctx, mortal, mobula.V(1)).Get(ctx); !errors.Is(err, mobula.ErrActorDied) {
			t.Errorf("a call after it: %v", err)
		}
		if err := spawn(-1, mobula.MaxRestarts(3)).Ready(ctx); !errors.Is(err, mobula.ErrPanic) || !strings.Contains(err.Error(), "it cannot start") {
			t.Errorf("a constructor that panics: %v", err)
		}
		add(t, ctx, neighbour, 1, 78) // which the panics beside it do not touch
	})
}

func TestWhatAPanicDoesIsTheUsersChoice(t *testing.T) {
	panicking(t, func(t *testing.T, ctx context.Context, spawn func(int, ...mobula.ActorOption) mobula.ActorRef[shaky]) {
		resumes := spawn(1, mobula.OnPanic(mobula.PanicResume))
		_, err := shakyBad.Go(ctx, resumes, mobula.V(1000)).Get(ctx)
		wantPanic(t, "an actor that resumes", err, "half way")
		add(t, ctx, resumes, 1, 1002)

		stops := spawn(1, mobula.OnPanic(mobula.PanicStop), mobula.MaxRestarts(5))
		_, err = shakyBad.Go(ctx, stops, mobula.V(1000)).Get(ctx)
		wantPanic(t, "an actor that stops", err, "half way")
		if _, err = shakyAdd.Go(ctx, stops, mobula.V(1)).Get(ctx); !errors.Is(err, mobula.ErrActorDied) || !errors.Is(err, mobula.ErrPanic) {
			t.Errorf("a call after it: %v", err)
		}

		boss := spawn(50, mobula.MaxRestarts(1))
		add(t, ctx, boss, 1, 51)
		hand, err := shakyHire.Go(ctx, boss, mobula.V(7)).Get(ctx)
		harness.Must(t, err)
		defer hand.Release()
		_, err = shakyBad.Go(ctx, hand, mobula.V(1)).Get(ctx)
		wantPanic(t, "an actor that escalates", err, "half way")
		if _, err = shakyAdd.Go(ctx, hand, mobula.V(1)).Get(ctx); !errors.Is(err, mobula.ErrActorDied) {
			t.Errorf("a call after it: %v", err)
		}
		add(t, ctx, boss, 1, 51) // it has started again

		again := spawn(1, mobula.MaxRestarts(1), mobula.MaxTaskRetries(1))
		if n, err := shakyOnce.Go(ctx, again, mobula.V(filepath.Join(harness.TempDir(t), "once"))).Get(ctx); err != nil || n != 2 {
			t.Errorf("a call that is made again: %d, %v", n, err)
		}
	})
}

func TestCallsBesideAPanicFail(t *testing.T) {
	panicking(t, func(t *testing.T, ctx context.Context, spawn func(int, ...mobula.ActorOption) mobula.ActorRef[shaky]) {
		a := spawn(1, mobula.MaxConcurrency(2), mobula.MaxRestarts(1))
		path := filepath.Join(harness.TempDir(t), "runs")
		beside := shakyHold.Go(ctx, a, mobula.V(path))
		testkit.Eventually(t, "the call beside it runs", func() bool {
			_, err := os.Stat(path)
			return err == nil
		})
		_, err := shakyBad.Go(ctx, a, mobula.V(1000)).Get(ctx)
		wantPanic(t, "the call that panics", err, "half way")
		if _, err := beside.Get(ctx); !errors.Is(err, mobula.ErrActorUnavailable) || errors.Is(err, mobula.ErrPanic) {
			t.Errorf("the call beside it: %v", err)
		}
		add(t, ctx, a, 1, 2)
	})
}

// The calls of another job's actor that panics do as those of its own job.
func TestAPanicInACallOfAnotherJob(t *testing.T) {
	ctx, cancel := harness.Limit(t)
	defer cancel()
	p := harness.MustLaunch(t, harness.NodeConfig{Dir: harness.TempDir(t), CPUs: 4, Store: 32 * harness.MiB, StoreDir: harness.TempDir(t)})
	_, own := harness.Connect(t, ctx, p)
	_, other := harness.Connect(t, ctx, p)
	a, err := shakyType.Spawn(own, mobula.V(1), mobula.Named("e2e", "shaky"), mobula.MaxRestarts(2))
	harness.Must(t, err)
	defer a.Release()
	found, err := mobula.GetActor[shaky](other, "e2e", "shaky")
	harness.Must(t, err)
	defer found.Release()
	add(t, other, found, 1, 2)
	for range 2 {
		bad := shakyBad.Go(other, found, mobula.V(1000))
		behind := shakyAdd.Go(other, found, mobula.V(1))
		_, err = bad.Get(other)
		wantPanic(t, "the call that panics", err, "half way")
		if n, err := behind.Get(other); err != nil || n != 2 {
			t.Errorf("the call behind it: %d, %v", n, err)
		}
		add(t, own, a, 1, 3)
	}
	_, err = shakyBad.Go(other, found, mobula.V(1)).Get(other)
	wantPanic(t, "the panic beyond its restarts", err, "half way")
	if _, err = shakyAdd.Go(other, found, mobula.V(1)).Get(other); !errors.Is(err, mobula.ErrActorDied) || !errors.Is(err, mobula.ErrPanic) {
		t.Errorf("a call after it: %v", err)
	}
}
