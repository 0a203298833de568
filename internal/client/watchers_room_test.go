package client

import (
	"context"
	"errors"
	"sync"
	"testing"

	"mobula/internal/errs"
	"mobula/internal/ids"
)

// A room lets as many calls in as it has places, and the next when a call's result is known, even if that was released meanwhile.
func TestARoomHasItsPlaces(t *testing.T) {
	f := newFake(t, Config{})
	actor := ids.ActorID(ids.RootTask(1, 7))
	r := f.c.Room(actor, 2)
	var calls []ids.ObjectID
	for range 2 {
		if err := r.Enter(t.Context(), actor, false); err != nil {
			t.Fatal(err)
		}
		_, hs := f.submit(plain)
		r.Called(hs)
		calls = append(calls, hs[0].ID())
		hs[0].Release()
	}
	if err := r.Enter(t.Context(), actor, false); !errors.Is(err, errs.ErrPendingCallsLimit) {
		t.Fatalf("a third call: %v", err)
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if err := r.Enter(over, actor, true); !errors.Is(err, context.Canceled) {
		t.Fatalf("a third call that waits no longer: %v", err)
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			if err := r.Enter(t.Context(), actor, true); err != nil {
				t.Error(err)
			}
			r.Called(nil) // it has no result
		})
	}
	f.resolveInline(calls[0], "done")
	wg.Wait()
	f.resolveInline(calls[1], "done")
	f.until("both places are free", func() bool {
		if r.Enter(t.Context(), actor, false) != nil {
			return false
		}
		defer r.Called(nil)
		if r.Enter(t.Context(), actor, false) != nil {
			return false
		}
		r.Called(nil)
		return true
	})
	f.until("what was released is", func() bool { return len(f.held) == 0 })
}
