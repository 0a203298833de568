package api

import (
	"context"
	"errors"
	"runtime"
	"testing"

	"mobula"
	"mobula/internal/testkit"
	"mobula/mobulatest"
)

// relay is an actor that calls another.
type relay struct{}

func (r *relay) Via(ctx context.Context, a mobula.ActorRef[tally], n int) (int, error) {
	return tallyInc.Go(ctx, a, mobula.V(n)).Get(ctx)
}

func (r *relay) Ref(ctx context.Context, a mobula.ActorRef[tally], n int) ([]mobula.Ref[int], error) {
	return []mobula.Ref[int]{tallyInc.Go(ctx, a, mobula.V(n))}, nil
}

func (r *relay) Large(_ context.Context, n int) ([]byte, error) { return make([]byte, n), nil }

func (r *relay) Panic(context.Context) (int, error) { panic("no") }

// gate is an actor with a call that waits for another.
type gate struct{ open chan int }

func (g *gate) Wait(ctx context.Context) (int, error) {
	select {
	case n := <-g.open:
		return n, nil
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	}
}

func (g *gate) Open(_ context.Context, n int, b []byte) (int, error) {
	g.open <- n + len(b)
	return len(b), nil
}

var (
	gates    = mobula.RegisterActor0("e2e/gate", func(context.Context) (*gate, error) { return &gate{make(chan int, 1)}, nil })
	gateWait = mobula.RegisterMethod0(gates, "Wait", (*gate).Wait)
	gateOpen = mobula.RegisterMethod2(gates, "Open", (*gate).Open)
)

var (
	relays     = mobula.RegisterActor0("e2e/relay", func(context.Context) (*relay, error) { return &relay{}, nil })
	relayVia   = mobula.RegisterMethod2(relays, "Via", (*relay).Via)
	relayRef   = mobula.RegisterMethod2(relays, "Ref", (*relay).Ref)
	relayLarge = mobula.RegisterMethod1(relays, "Large", (*relay).Large)
	relayPanic = mobula.RegisterMethod0(relays, "Panic", (*relay).Panic)
	relayTakes = mobula.Register1("e2e/relay-takes", func(_ context.Context, n int) (int, error) { return n, nil })
)

// Calls between a program and its actors, and between actors, go past the owner: it knows no task of them, until a reference leaves its process.
func TestCallsGoStraight(t *testing.T) {
	t.Setenv("MOBULA_STRAIGHT_CALLS", "1")
	c := mobulatest.Start(t, mobula.WithCPUs(2))
	ctx := c.Context(t.Context())
	a := spawn(ctx, t, 0)
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
	r, err := relays.Spawn(ctx, mobula.MaxRestarts(1))
	if err != nil {
		t.Fatal(err)
	}
	want := func(ref mobula.Ref[int], n int) {
		t.Helper()
		if got, err := ref.Get(ctx); err != nil || got != n {
			t.Errorf("got %d, %v; want %d", got, err, n)
		}
	}
	want(relayVia.Go(ctx, r, mobula.V(a), mobula.V(1)), 1002)
	count := func() int { return must(c.ListTasks(ctx, mobula.Query{}))(t).Total }
	if n := count(); n > 2 {
		t.Errorf("the owner knows %d tasks, want the two constructors", n)
	}
	want(relayTakes.Go(ctx, tallyInc.Go(ctx, a, mobula.V(1))), 1003) // its argument leaves
	inner := must(relayRef.Go(ctx, r, mobula.V(a), mobula.V(1)).Get(ctx))(t)
	want(inner[0], 1004)
	if b := must(relayLarge.Go(ctx, r, mobula.V(1<<20)).Get(ctx))(t); len(b) != 1<<20 {
		t.Errorf("a large result has %d bytes", len(b))
	}
	if _, err := relayPanic.Go(ctx, r).Get(ctx); !errors.Is(err, mobula.ErrPanic) {
		t.Errorf("a panic gives %v", err)
	}
	want(relayVia.Go(ctx, r, mobula.V(a), mobula.V(1)), 1005) // by the next instance
	g, err := gates.Spawn(ctx, mobula.MaxConcurrency(2))
	if err != nil {
		t.Fatal(err)
	}
	before := count()
	waits := gateWait.Go(ctx, g)
	big := must(mobula.Put(ctx, make([]byte, 1<<20)))(t)
	want(gateOpen.Go(ctx, g, tallyInc.Go(ctx, a, mobula.V(1)), big), 1<<20) // beside the one that waits for it
	want(waits, 1006+1<<20)
	if n := count(); n > before+1 {
		t.Errorf("the owner knows %d tasks more, want the argument's", n-before)
	}
	big.Release()
	if err := a.Stop(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := tallyInc.Go(ctx, a, mobula.V(1)).Get(ctx); !errors.Is(err, mobula.ErrActorDied) {
		t.Errorf("a call of a stopped actor gives %v", err)
	}
	for _, x := range append(refs, inner...) {
		x.Release()
	}
	waits.Release()
	a.Release()
	r.Release()
	g.Release()
	testkit.Eventually(t, "no object is left", func() bool {
		runtime.GC() // of references that were not let go of
		if p := must(c.ListObjects(ctx, mobula.Query{}))(t); p.Total > 0 {
			t.Logf("%+v", p.Rows)
			return false
		}
		return true
	})
}

func must[T any](v T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}
