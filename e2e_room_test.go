package mobula_test

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	"mobula"
)

// One call more than MaxPendingCalls fails at the call; with WaitForRoom it waits until there is room, or its context ends.
func TestCallsBeyondWhatMayBePending(t *testing.T) {
	both(t, func(ctx context.Context, t *testing.T) {
		a := spawn(ctx, t, 0, mobula.MaxPendingCalls(2))
		dir := t.TempDir()
		held := []mobula.Ref[int]{tallyHold.Go(ctx, a, mobula.V(dir), mobula.V("0")), tallyHold.Go(ctx, a, mobula.V(dir), mobula.V("1"))}
		if err := tallyInc.Tell(ctx, a, mobula.V(1)); !errors.Is(err, mobula.ErrPendingCallsLimit) {
			t.Errorf("the call itself is told %v", err)
		}
		if _, err := tallyInc.Go(ctx, a, mobula.V(1)).Get(ctx); !errors.Is(err, mobula.ErrPendingCallsLimit) {
			t.Errorf("its result is %v", err)
		}
		short, cancel := context.WithCancel(ctx)
		cancelled := make(chan error)
		go func() {
			_, err := tallyInc.Go(short, a, mobula.V(1), mobula.WaitForRoom()).Get(ctx)
			cancelled <- err
		}()
		made := make(chan mobula.Ref[int])
		for range 4 {
			go func() { made <- tallyInc.Go(ctx, a, mobula.V(1), mobula.WaitForRoom()) }()
		}
		cancel()
		if err := <-cancelled; !errors.Is(err, context.Canceled) && !errors.Is(err, mobula.ErrCancelled) {
			t.Errorf("a call that waits no longer: %v", err)
		}
		select {
		case <-made:
			t.Error("a call was made while there was no room")
		default:
		}
		if err := note(filepath.Join(dir, "go"), "x"); err != nil {
			t.Fatal(err)
		}
		for range 4 {
			r := <-made
			if _, err := r.Get(ctx); err != nil {
				t.Error(err)
			}
			r.Release()
		}
		for _, r := range held {
			if _, err := r.Get(ctx); err != nil {
				t.Error(err)
			}
		}
		for i := range 200 {
			r := tallyInc.Go(ctx, a, mobula.V(1), mobula.WaitForRoom())
			if i%2 == 0 {
				r.Release() // what nobody keeps makes room too
			} else if _, err := r.Get(ctx); err != nil {
				t.Fatalf("call %d: %v", i, err)
			}
		}
	})
}
