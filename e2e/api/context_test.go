package api

import (
	"context"
	"errors"
	"iter"
	"path/filepath"
	"testing"
	"time"

	"mobula/internal/testkit"

	"mobula"
)

// followed runs until its context ends, and notes that it did; what it has called with its own context does so too.
func followed(ctx context.Context, dir string, deep int) (int, error) {
	if deep > 0 {
		return e2eFollowed.Go(ctx, mobula.V(dir), mobula.V(deep-1)).Get(ctx)
	}
	if err := note(filepath.Join(dir, "began"), "x"); err != nil {
		return 0, err
	}
	<-ctx.Done()
	return 0, errors.Join(note(filepath.Join(dir, "cancelled"), "x"), ctx.Err())
}

var e2eFollowed mobula.Func2[string, int, int]

func init() { e2eFollowed = mobula.Register2("e2e/followed", followed) }

// leaves calls a task with its own context, or with one that it cancels, and returns the reference.
func leaves(ctx context.Context, dir string, cancels bool) (mobula.Ref[int], error) {
	if cancels {
		short, cancel := context.WithCancel(ctx)
		defer cancel()
		return e2eFollowed.Go(short, mobula.V(dir), mobula.V(0)), nil
	}
	r := e2eHold.Go(context.WithValue(ctx, leaveKey{}, 1), mobula.V(dir), mobula.V("left"))
	return anInt.Go(ctx, r), nil
}

type leaveKey struct{}

var (
	e2eLeaves = mobula.Register2("e2e/leaves", leaves)
	anInt     = mobula.Register1("e2e/an_int", func(context.Context, int) (int, error) { return 7, nil })
	endless   = mobula.RegisterStream0("e2e/endless", func(ctx context.Context) iter.Seq2[int, error] {
		return func(yield func(int, error) bool) {
			n := 0
			for ctx.Err() == nil && yield(n, nil) {
				n++
			}
			if ctx.Err() != nil {
				yield(0, ctx.Err())
			}
		}
	})
)

func TestTheContextOfACallCancelsItsTask(t *testing.T) {
	both(t, func(ctx context.Context, t *testing.T) {
		for _, deep := range []int{0, 2} {
			dir := t.TempDir()
			short, cancel := context.WithCancel(ctx)
			r := e2eFollowed.Go(short, mobula.V(dir), mobula.V(deep))
			testkit.Eventually(t, "it runs", exists(filepath.Join(dir, "began")))
			cancel()
			if _, err := r.Get(ctx); !errors.Is(err, mobula.ErrCancelled) {
				t.Errorf("%d deep: got %v, want ErrCancelled", deep, err)
			}
			testkit.Eventually(t, "it saw it", exists(filepath.Join(dir, "cancelled")))
			if _, err := e2eAdd.Go(short, mobula.V(1.0), mobula.V(1.0)).Get(ctx); !errors.Is(err, mobula.ErrCancelled) {
				t.Errorf("a call with a context that had ended: got %v", err)
			}
		}
	})
}

func TestWhatWaitsIsCancelledWithItsContext(t *testing.T) {
	both(t, func(ctx context.Context, t *testing.T) {
		dir := t.TempDir()
		why := errors.New("the user has left")
		short, cancel := context.WithCancelCause(ctx)
		first := e2eHold.Go(ctx, mobula.V(dir), mobula.V("first"))
		waits := anInt.Go(short, first)
		other := anInt.Go(ctx, first)
		cancel(why)
		if _, err := waits.Get(ctx); !errors.Is(err, mobula.ErrCancelled) {
			t.Errorf("what waits: got %v, want ErrCancelled", err)
		}
		if err := note(filepath.Join(dir, "go"), "x"); err != nil {
			t.Fatal(err)
		}
		get(ctx, t, other, 7) // called with another context
		if err := e2eAdd.Go(short, mobula.V(1.0), mobula.V(1.0)).Err(); !errors.Is(err, mobula.ErrCancelled) || err.Error() == mobula.ErrCancelled.Error() {
			t.Errorf("got %v", err)
		}
	})
}

// A result that was seen, a deadline, and the end of the task that has called are no cancellation.
func TestWhatDoesNotCancelWithAContext(t *testing.T) {
	both(t, func(ctx context.Context, t *testing.T) {
		short, cancel := context.WithCancel(ctx)
		r := e2eAdd.Go(short, mobula.V(1.0), mobula.V(2.0))
		get(ctx, t, r, 3)
		cancel()
		get(ctx, t, r, 3)

		late, stop := context.WithTimeout(ctx, 50*time.Millisecond)
		defer stop()
		d := e2eFollowed.Go(late, mobula.V(t.TempDir()), mobula.V(0))
		if _, err := d.Get(ctx); !errors.Is(err, mobula.ErrDeadline) {
			t.Errorf("past its deadline: got %v, want ErrDeadline", err)
		}

		dir := t.TempDir()
		left, err := e2eLeaves.Go(ctx, mobula.V(dir), mobula.V(false)).Get(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if err := note(filepath.Join(dir, "go"), "x"); err != nil {
			t.Fatal(err)
		}
		get(ctx, t, left, 7)
	})
}

func TestATaskCancelsWhatItCalledWithAContextOfItsOwn(t *testing.T) {
	both(t, func(ctx context.Context, t *testing.T) {
		left, err := e2eLeaves.Go(ctx, mobula.V(t.TempDir()), mobula.V(true)).Get(ctx)
		if err == nil {
			_, err = left.Get(ctx)
		}
		if !errors.Is(err, mobula.ErrCancelled) {
			t.Errorf("got %v, want ErrCancelled", err)
		}
	})
}

func TestAStreamEndsWithTheContextOfItsCall(t *testing.T) {
	both(t, func(ctx context.Context, t *testing.T) {
		short, cancel := context.WithCancel(ctx)
		defer cancel()
		items := endless.Start(short, mobula.Backpressure(1))
		if _, ok, err := items.Next(ctx); !ok || err != nil {
			t.Fatal(ok, err)
		}
		cancel()
		for {
			_, ok, err := items.Next(ctx)
			if errors.Is(err, mobula.ErrCancelled) {
				return
			}
			if !ok || err != nil {
				t.Fatalf("got %v, %v, want ErrCancelled", ok, err)
			}
		}
	})
}

func TestACallOfAnActorEndsWithItsContext(t *testing.T) {
	both(t, func(ctx context.Context, t *testing.T) {
		a := spawn(ctx, t, 0)
		defer a.Release()
		dir := t.TempDir()
		short, cancel := context.WithCancel(ctx)
		first := tallyHold.Go(ctx, a, mobula.V(dir), mobula.V("call"))
		second := tallyInc.Go(short, a, mobula.V(5))
		testkit.Eventually(t, "the first runs", exists(filepath.Join(dir, "call.began")))
		cancel()
		if _, err := second.Get(ctx); !errors.Is(err, mobula.ErrCancelled) {
			t.Errorf("got %v, want ErrCancelled", err)
		}
		if err := note(filepath.Join(dir, "go"), "x"); err != nil {
			t.Fatal(err)
		}
		if _, err := first.Get(ctx); err != nil {
			t.Errorf("the one before: %v", err)
		}
		get(ctx, t, tallyInc.Go(ctx, a, mobula.V(1)), 1)
	})
}
