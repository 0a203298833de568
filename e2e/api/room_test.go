package api

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	"mobula"
	"mobula/mobulatest"
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

// A call of which no result is kept, and a stream, have their places too, and give them back when they end.
func TestCallsWithoutAResultHaveTheirPlaces(t *testing.T) {
	both(t, func(ctx context.Context, t *testing.T) {
		a := spawn(ctx, t, 0, mobula.MaxPendingCalls(2))
		dir := t.TempDir()
		if err := tallyHold.Tell(ctx, a, mobula.V(dir), mobula.V("0")); err != nil {
			t.Fatal(err)
		}
		held := tallyHeld.Start(ctx, a, mobula.V(dir), mobula.V("1"))
		if err := tallyInc.Tell(ctx, a, mobula.V(1)); !errors.Is(err, mobula.ErrPendingCallsLimit) {
			t.Errorf("the call itself is told %v", err)
		}
		if _, _, err := tallyHeld.Start(ctx, a, mobula.V(dir), mobula.V("x")).Next(ctx); !errors.Is(err, mobula.ErrPendingCallsLimit) {
			t.Errorf("the stream is told %v", err)
		}
		made := make(chan error)
		for range 4 {
			go func() { made <- tallyInc.Tell(ctx, a, mobula.V(1), mobula.WaitForRoom()) }()
		}
		select {
		case err := <-made:
			t.Errorf("a call was made while there was no room: %v", err)
		default:
		}
		if err := note(filepath.Join(dir, "go"), "x"); err != nil {
			t.Fatal(err)
		}
		for range 4 {
			if err := <-made; err != nil {
				t.Error(err)
			}
		}
		if _, ok, err := held.Next(ctx); !ok || err != nil {
			t.Errorf("the stream gave %v, %v", ok, err)
		}
		for range 200 {
			if err := tallyInc.Tell(ctx, a, mobula.V(1), mobula.WaitForRoom()); err != nil {
				t.Fatal(err)
			}
		}
		get(ctx, t, tallyInc.Go(ctx, a, mobula.V(0), mobula.WaitForRoom()), 204) // none was lost
	})
}

// Who finds an actor by its name knows its limit, in its own job and in another, and all references of a process count together.
func TestWhoFindsAnActorKnowsItsLimit(t *testing.T) {
	c := mobulatest.Start(t, mobula.WithProcesses(), mobula.WithCPUs(2))
	other, err := mobula.Connect(t.Context(), c.Address())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = other.Close(context.Background()) })
	made := spawn(c.Context(t.Context()), t, 0, mobula.MaxPendingCalls(2), mobula.Named("rooms", "one"))
	defer made.Release()
	for name, find := range map[string]func(context.Context) (mobula.ActorRef[tally], error){
		"by its name": func(ctx context.Context) (mobula.ActorRef[tally], error) {
			return mobula.GetActor[tally](ctx, "rooms", "one")
		},
		"where it is": func(ctx context.Context) (mobula.ActorRef[tally], error) {
			return tallies.Spawn(ctx, mobula.V(0), mobula.Named("rooms", "one"), mobula.GetIfExists())
		},
	} {
		for whose, cl := range map[string]*mobula.Cluster{"its own job": c, "another job": other} {
			t.Run(name+", "+whose, func(t *testing.T) {
				ctx, dir := cl.Context(t.Context()), t.TempDir()
				var found [2]mobula.ActorRef[tally]
				for i := range found {
					if found[i], err = find(ctx); err != nil {
						t.Fatal(err)
					}
					defer found[i].Release()
					if err := tallyHold.Tell(ctx, found[i], mobula.V(dir), mobula.V("x"), mobula.WaitForRoom()); err != nil {
						t.Fatal(err)
					}
				}
				if err := tallyInc.Tell(ctx, found[0], mobula.V(1)); !errors.Is(err, mobula.ErrPendingCallsLimit) {
					t.Errorf("the call itself is told %v", err)
				}
				if err := note(filepath.Join(dir, "go"), "x"); err != nil {
					t.Fatal(err)
				}
				if _, err := tallyInc.Go(ctx, found[1], mobula.V(1), mobula.WaitForRoom()).Get(ctx); err != nil {
					t.Error(err)
				}
			})
		}
	}
}
