package api

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"

	"mobula"
	"mobula/internal/testkit"
	"mobula/mobulatest"
)

// tally is an actor whose state tells how it was called.
type tally struct{ n int }

func newTally(_ context.Context, start int) (*tally, error) {
	if start < 0 {
		return nil, errNope
	}
	return &tally{start}, nil
}

func (c *tally) Inc(_ context.Context, by int) (int, error) { c.n += by; return c.n, nil }

func (c *tally) PID(context.Context) (int, error) { return os.Getpid(), nil }

func (c *tally) Hold(ctx context.Context, dir, name string) (int, error) { return hold(ctx, dir, name) }

func (c *tally) Held(ctx context.Context, dir, name string) iter.Seq2[int, error] {
	return func(yield func(int, error) bool) { yield(hold(ctx, dir, name)) }
}

func (c *tally) Who(ctx context.Context) (mobula.RuntimeContext, error) {
	return mobula.GetRuntimeContext(ctx)
}

func (c *tally) Die(context.Context) (int, error) {
	return 0, syscall.Kill(os.Getpid(), syscall.SIGKILL)
}

var (
	tallies   = mobula.RegisterActor1("e2e/tally", newTally)
	tallyInc  = mobula.RegisterMethod1(tallies, "Inc", (*tally).Inc)
	tallyPID  = mobula.RegisterMethod0(tallies, "PID", (*tally).PID)
	tallyHold = mobula.RegisterMethod2(tallies, "Hold", (*tally).Hold)
	tallyHeld = mobula.RegisterStreamMethod2(tallies, "Held", (*tally).Held)
	tallyWho  = mobula.RegisterMethod0(tallies, "Who", (*tally).Who)
	tallyDie  = mobula.RegisterMethod0(tallies, "Die", (*tally).Die)

	e2eVia = mobula.Register2("e2e/via", func(ctx context.Context, a mobula.ActorRef[tally], n int) (int, error) {
		return tallyInc.Go(ctx, a, mobula.V(n)).Get(ctx)
	})
)

func spawn(ctx context.Context, t *testing.T, start int, opts ...mobula.ActorOption) mobula.ActorRef[tally] {
	t.Helper()
	a, err := tallies.Spawn(ctx, mobula.V(start), opts...)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestC4CallsRunInOrder(t *testing.T) {
	both(t, func(ctx context.Context, t *testing.T) {
		a := spawn(ctx, t, 0)
		refs := make([]mobula.Ref[int], 1000)
		for i := range refs {
			refs[i] = tallyInc.Go(ctx, a, mobula.V(1))
		}
		got, err := mobula.GetAll(ctx, refs)
		if err != nil {
			t.Fatal(err)
		}
		for i, v := range got {
			if v != i+1 {
				t.Fatalf("call %d returned %d", i+1, v)
			}
		}
		get(ctx, t, e2eVia.Go(ctx, mobula.V(a), mobula.V(5)), 1005)
		if err := a.Ready(ctx); err != nil {
			t.Error(err)
		}
	})
}

func TestAFailedConstructorFailsTheCalls(t *testing.T) {
	both(t, func(ctx context.Context, t *testing.T) {
		a := spawn(ctx, t, -1)
		if err := a.Ready(ctx); !errors.Is(err, errNope) {
			t.Errorf("ready: %v", err)
		}
		if _, err := tallyInc.Go(ctx, a, mobula.V(1)).Get(ctx); !errors.Is(err, mobula.ErrActorDied) {
			t.Errorf("a call: %v", err)
		}
	})
}

func TestC5NamedActors(t *testing.T) {
	both(t, func(ctx context.Context, t *testing.T) {
		a := spawn(ctx, t, 1, mobula.Named("prod", "hits"))
		if _, err := tallies.Spawn(ctx, mobula.V(1), mobula.Named("prod", "hits")); !errors.Is(err, mobula.ErrNameTaken) {
			t.Errorf("the same name: %v", err)
		}
		same, err := tallies.Spawn(ctx, mobula.V(1), mobula.Named("prod", "hits"), mobula.GetIfExists())
		if err != nil || same.ID() != a.ID() {
			t.Fatalf("get if exists: %v, %v, want %v", same, err, a)
		}
		get(ctx, t, tallyInc.Go(ctx, same, mobula.V(1)), 2)
		found, err := mobula.GetActor[tally](ctx, "prod", "hits")
		if err != nil {
			t.Fatal(err)
		}
		get(ctx, t, tallyInc.Go(ctx, found, mobula.V(1)), 3)
		if _, err := mobula.GetActor[tally](ctx, "prod", "misses"); !errors.Is(err, mobula.ErrNotFound) {
			t.Errorf("no such name: %v", err)
		}
		keep := spawn(ctx, t, 7, mobula.Named("", "own"))
		if _, err := mobula.GetActor[tally](ctx, "prod", "\xff"); !errors.Is(err, mobula.ErrNotFound) {
			t.Errorf("a name that no actor can have: %v", err)
		}
		own, err := mobula.GetActor[tally](ctx, "", "own")
		if err != nil {
			t.Fatal(err)
		}
		get(ctx, t, tallyInc.Go(ctx, own, mobula.V(1)), 8)
		runtime.KeepAlive(keep)
		if err := a.Kill(ctx); err != nil {
			t.Fatal(err)
		}
		for i := range 10 { // once it is given up it is free at once, and who takes what there is gets none that is ending
			b, err := tallies.Spawn(ctx, mobula.V(i), mobula.Named("prod", "hits"), mobula.GetIfExists())
			if err != nil {
				t.Fatal(err)
			}
			get(ctx, t, tallyInc.Go(ctx, b, mobula.V(0)), i)
			b.Release()
			b = spawn(ctx, t, 100+i, mobula.Named("prod", "hits"))
			get(ctx, t, tallyInc.Go(ctx, b, mobula.V(0)), 100+i)
			b.Release()
		}

	})
}

func TestC6Concurrency(t *testing.T) {
	both(t, func(ctx context.Context, t *testing.T) {
		a := spawn(ctx, t, 0, mobula.MaxConcurrency(4), mobula.MaxPendingCalls(6), mobula.ConcurrencyGroup("io", 1))
		dir := t.TempDir()
		refs := make([]mobula.Ref[int], 4)
		for i := range refs {
			refs[i] = tallyHold.Go(ctx, a, mobula.V(dir), mobula.V(fmt.Sprint(i)))
		}
		for i := range refs {
			testkit.Eventually(t, "four calls overlap", exists(filepath.Join(dir, fmt.Sprint(i, ".began"))))
		}
		// A group has its own room.
		get(ctx, t, tallyInc.Go(ctx, a, mobula.V(1), mobula.Group("io")), 1)
		over := make([]mobula.Ref[int], 20)
		for i := range over {
			over[i] = tallyInc.Go(ctx, a, mobula.V(1))
		}
		if err := note(filepath.Join(dir, "go"), "x"); err != nil {
			t.Fatal(err)
		}
		refused := 0
		for _, r := range over {
			if _, err := r.Get(ctx); errors.Is(err, mobula.ErrPendingCallsLimit) {
				refused++
			} else if err != nil {
				t.Error(err)
			}
		}
		if refused == 0 {
			t.Error("no call was refused with six allowed to wait")
		}
		if _, err := mobula.GetAll(ctx, refs); err != nil {
			t.Error(err)
		}
	})
}

func TestC12ActorsRestart(t *testing.T) {
	ctx := mobulatest.Context(t, mobula.WithProcesses(), mobula.WithCPUs(2))
	a := spawn(ctx, t, 10, mobula.MaxRestarts(2), mobula.MaxTaskRetries(-1))
	get(ctx, t, tallyInc.Go(ctx, a, mobula.V(1)), 11)
	for _, idle := range []bool{false, true} {
		before, err := tallyPID.Go(ctx, a).Get(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if err := syscall.Kill(before, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		if idle { // that counts too: there is nobody else who could have brought the process down
			testkit.Eventually(t, "the process is gone", func() bool { return syscall.Kill(before, 0) != nil })
		}
		get(ctx, t, tallyInc.Go(ctx, a, mobula.V(1)), 11) // a new instance, and the call is retried
		after, err := tallyPID.Go(ctx, a).Get(ctx)
		if err != nil || after == before {
			t.Errorf("process %d, then %d, %v", before, after, err)
		}
	}
	pid, err := tallyPID.Go(ctx, a).Get(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, "it is dead for good", func() bool {
		_, err := tallyInc.Go(ctx, a, mobula.V(1)).Get(ctx)
		return errors.Is(err, mobula.ErrActorDied)
	})
}

func TestC12WithoutRetriesACallInFlightFails(t *testing.T) {
	ctx := mobulatest.Context(t, mobula.WithProcesses(), mobula.WithCPUs(2))
	a := spawn(ctx, t, 0, mobula.MaxRestarts(1))
	if _, err := tallyDie.Go(ctx, a).Get(ctx); !errors.Is(err, mobula.ErrActorUnavailable) || errors.Is(err, mobula.ErrActorDied) {
		t.Errorf("the call that killed it: %v", err)
	}
	testkit.Eventually(t, "it is back", func() bool {
		n, err := tallyInc.Go(ctx, a, mobula.V(1)).Get(ctx)
		return err == nil && n >= 1
	})
	b := spawn(ctx, t, 0)
	if _, err := tallyDie.Go(ctx, b).Get(ctx); !errors.Is(err, mobula.ErrActorDied) {
		t.Errorf("without restarts: %v", err)
	}
}

func TestC14Kill(t *testing.T) {
	both(t, func(ctx context.Context, t *testing.T) {
		a := spawn(ctx, t, 0)
		dir := t.TempDir()
		running := tallyHold.Go(ctx, a, mobula.V(dir), mobula.V("r"))
		testkit.Eventually(t, "it runs", exists(filepath.Join(dir, "r.began")))
		waiting := tallyInc.Go(ctx, a, mobula.V(1))
		if err := a.Kill(ctx); err != nil {
			t.Fatal(err)
		}
		for _, r := range []mobula.Ref[int]{running, waiting, tallyInc.Go(ctx, a, mobula.V(1))} {
			if _, err := r.Get(ctx); !errors.Is(err, mobula.ErrActorDied) {
				t.Errorf("got %v", err)
			}
		}
	})
}

func TestC22ADriversExitEndsItsJob(t *testing.T) {
	c := mobulatest.Start(t, mobula.WithProcesses(), mobula.WithCPUs(2))
	ctx := c.Context(t.Context())
	second, err := mobula.Connect(t.Context(), c.Address())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = second.Close(context.Background()) }) // the test looks at the first result
	sctx := second.Context(t.Context())
	spawn(sctx, t, 1, mobula.Named("x", "kept"), mobula.Detached())
	named := spawn(sctx, t, 1, mobula.Named("x", "lost"))
	if _, err := mobula.Put(sctx, make([]byte, 8<<20)); err != nil {
		t.Fatal(err)
	}
	lost, err := mobula.GetActor[tally](ctx, "x", "lost")
	if err != nil {
		t.Fatal(err)
	}
	get(ctx, t, tallyInc.Go(ctx, lost, mobula.V(1)), 2)
	runtime.KeepAlive(named) // without a reference it would end sooner
	if err := second.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, "its objects are gone", func() bool {
		s, err := c.Status(ctx)
		return err == nil && s.Store.Held < 8<<20
	})
	testkit.Eventually(t, "its actor is gone", func() bool {
		_, err := tallyInc.Go(ctx, lost, mobula.V(1)).Get(ctx)
		return errors.Is(err, mobula.ErrActorDied)
	})
	kept, err := mobula.GetActor[tally](ctx, "x", "kept")
	if err != nil {
		t.Fatal(err)
	}
	get(ctx, t, tallyInc.Go(ctx, kept, mobula.V(1)), 2)
	if err := kept.Kill(ctx); err != nil {
		t.Fatal(err)
	}
}
