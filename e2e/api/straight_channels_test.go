package api

import (
	"context"
	"errors"
	"testing"

	"mobula"
	"mobula/internal/testkit"
	"mobula/mobulatest"
)

// Calls between a program, its actors in worker processes, and those go past the owner too, where that is turned on: it knows no task of them, until a reference leaves its
// process.
func TestCallsGoByChannels(t *testing.T) {
	t.Setenv("MOBULA_STRAIGHT_CHANNELS", "1")
	t.Setenv("MOBULA_STRAIGHT_CALLS", "")
	c := mobulatest.Start(t, mobula.WithCPUs(2), mobula.WithProcesses())
	ctx := c.Context(t.Context())
	a, r := spawn(ctx, t, 0), must(relays.Spawn(ctx))(t)
	refs := make([]mobula.Ref[int], 1000)
	for i := range refs {
		refs[i] = tallyInc.Go(ctx, a, mobula.V(1))
	}
	for i, got := range must(mobula.GetAll(ctx, refs))(t) {
		if got != i+1 {
			t.Fatalf("call %d gave %d", i, got)
		}
	}
	if err := tallyInc.Tell(ctx, a, mobula.V(1)); err != nil {
		t.Fatal(err)
	}
	want := func(ref mobula.Ref[int], n int) {
		t.Helper()
		if got, err := ref.Get(ctx); err != nil || got != n {
			t.Errorf("got %d, %v; want %d", got, err, n)
		}
	}
	want(relayVia.Go(ctx, r, mobula.V(a), mobula.V(1)), 1002)                            // from one worker process to another
	testkit.Eventually(t, "the owner knows of the two constructors alone", func() bool { // the call that was told may be under way
		return must(c.ListTasks(ctx, mobula.Query{}))(t).Total == 2
	})
	want(relayTakes.Go(ctx, tallyInc.Go(ctx, a, mobula.V(1))), 1003)         // a reference leaves for a task
	want(tallyInc.Go(ctx, a, tallyInc.Go(ctx, a, mobula.V(1))), 1004+1004)   // and for a call
	inner := must(relayRef.Go(ctx, r, mobula.V(a), mobula.V(1)).Get(ctx))(t) // and comes in an answer, of a process that has called another
	want(inner[0], 2009)
	if b := must(relayLarge.Go(ctx, r, mobula.V(3<<20)).Get(ctx))(t); len(b) != 3<<20 {
		t.Errorf("a large result has %d bytes", len(b))
	}
	if _, err := relayPanic.Go(ctx, r).Get(ctx); !errors.Is(err, mobula.ErrPanic) {
		t.Errorf("a call that panics: %v", err)
	}
	if err := a.Kill(ctx); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, "the actor is dead", func() bool { // a call may be there before the kill is
		_, err := tallyInc.Go(ctx, a, mobula.V(1)).Get(ctx)
		return errors.Is(err, mobula.ErrActorDied)
	})
}

// A stream's items come by the owner, which knows of the call first; a cancel finds a call where it runs.
func TestStreamsAndCancelsByChannels(t *testing.T) {
	t.Setenv("MOBULA_STRAIGHT_CHANNELS", "1")
	t.Setenv("MOBULA_STRAIGHT_CALLS", "")
	c := mobulatest.Start(t, mobula.WithCPUs(2), mobula.WithProcesses())
	ctx := c.Context(t.Context())
	g := must(gates.Spawn(ctx, mobula.MaxConcurrency(2)))(t)
	s := gatePages.Start(ctx, g, mobula.V(4), mobula.V(200_000))
	if n, err := gateOpen.Go(ctx, g, mobula.V(1), mobula.V([]byte{1})).Get(ctx); err != nil || n != 1 {
		t.Fatalf("the call behind the stream came to %d, %v", n, err)
	}
	for i := range 4 {
		ref, ok, err := s.Next(ctx)
		if err != nil || !ok {
			t.Fatalf("item %d: %v, %v", i, ok, err)
		}
		if b := must(ref.Get(ctx))(t); len(b) != 200_001 || int(b[0]) != i {
			t.Errorf("item %d has %d bytes and is number %d", i, len(b), b[0])
		}
		ref.Release()
	}
	shut := must(gates.Spawn(ctx))(t)
	waits := gateWait.Go(ctx, shut)
	mine, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := waits.Get(mine); !errors.Is(err, context.Canceled) {
		t.Errorf("a get that is given up: %v", err)
	}
	if err := waits.Cancel(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := waits.Get(ctx); !errors.Is(err, mobula.ErrCancelled) {
		t.Errorf("a cancelled call: %v", err)
	}
}
