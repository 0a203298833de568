package client

import (
	"testing"
	"testing/synctest"

	"mobula/internal/direct"
	"mobula/wire"
)

// Who finds no room waits until a call ends, and one larger than what is left goes.
func TestStraightRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := straightRoom{base: new(base)}
		r.add(10)
		tc := new(TaskContext)
		for _, n := range []int64{9, 5} {
			if err := r.admit(t.Context(), tc, n); err != nil {
				t.Fatal(err)
			}
		}
		in := 0
		for range 2 {
			go func() {
				if err := r.admit(t.Context(), tc, 3); err != nil {
					t.Error(err)
				}
				in++
			}()
		}
		synctest.Wait()
		r.add(4) // nothing is free yet
		synctest.Wait()
		if in != 0 {
			t.Fatalf("%d calls are let in that there is no room for", in)
		}
		r.add(1)
		synctest.Wait()
		if in != 1 {
			t.Fatalf("%d calls are let in, want one", in)
		}
		r.add(3)
		synctest.Wait()
		if in != 2 || r.left.Load() != -2 || r.waiters.Load() != 0 {
			t.Errorf("%d calls are let in, and %d bytes left", in, r.left.Load())
		}
	})
}

// An actor is held until the last of the calls under way has ended, and no longer.
func TestCallsHoldTheirActor(t *testing.T) {
	run := make(chan struct{})
	a := newHost(t, func(*wire.TaskSpec) *direct.Outcome { <-run; return new(direct.Outcome) })
	tell := &wire.TaskOptions{Func: "f"}
	for range 3 {
		a.call(tell)
	}
	a.h.Release()
	for range 2 {
		run <- struct{}{}
	}
	a.c.Flush()
	a.mu.Lock()
	if n := a.count(wire.KindRelease); n != 0 {
		t.Errorf("the actor was let go of under a call")
	}
	a.mu.Unlock()
	run <- struct{}{}
	a.until("the actor is let go of", func() bool { return a.c.Handles() == 0 || a.count(wire.KindRelease) > 0 })
}

// An actor whose calls have all ended is let go of with its last handle, and can be called again until then.
func TestAnActorIsLetGoOfBetweenCalls(t *testing.T) {
	a := newHost(t, func(*wire.TaskSpec) *direct.Outcome { return new(direct.Outcome) })
	tell := &wire.TaskOptions{Func: "f"}
	over := func() bool { return a.c.straight.room.left.Load() == straightWindow }
	for range 2 {
		a.call(tell)
		a.until("the call has ended", over)
		a.h.Retain().Release()
		a.c.Flush()
		a.mu.Lock()
		if n := a.count(wire.KindRelease); n != 0 {
			t.Fatal("the actor was let go of, and somebody holds it")
		}
		a.mu.Unlock()
	}
	a.h.Release()
	a.until("the actor is let go of", func() bool { return a.c.Handles() == 0 || a.count(wire.KindRelease) > 0 })
}
