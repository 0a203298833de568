package mobula

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"testing"
)

type counter struct{ n int }

func newCounter(_ context.Context, start int) (*counter, error) {
	if start < 0 {
		return nil, errMine
	}
	return &counter{start}, nil
}

func (c *counter) Inc(_ context.Context, by int) (int, error) { c.n += by; return c.n, nil }

func (c *counter) Value(context.Context) (int, error) { return c.n, nil }

func (c *counter) Steps(_ context.Context, n int) iter.Seq2[int, error] {
	return func(yield func(int, error) bool) {
		for range n {
			c.n++
			if !yield(c.n, nil) {
				return
			}
		}
	}
}

type other struct{}

var (
	counters     = RegisterActor1("test/counter", newCounter)
	counterInc   = RegisterMethod1(counters, "Inc", (*counter).Inc)
	counterValue = RegisterMethod0(counters, "Value", (*counter).Value)
	counterSteps = RegisterStreamMethod1(counters, "Steps", (*counter).Steps)

	others     = RegisterActor0("test/other", func(context.Context) (*other, error) { return &other{}, nil })
	otherMeth  = RegisterMethod0(others, "Meth", func(*other, context.Context) (int, error) { return 1, nil })
	nobody     = RegisterActor0("test/nobody", func(context.Context) (*other, error) { return nil, nil })
	incByProxy = Register1("test/proxy", func(ctx context.Context, p proxy) (int, error) { return counterInc.Go(ctx, p.A, V(p.By)).Get(ctx) })
	incDirect  = Register1("test/direct", func(ctx context.Context, a ActorRef[counter]) (int, error) {
		return counterInc.Go(ctx, a, V(100)).Get(ctx)
	})
)

type proxy struct {
	A  ActorRef[counter]
	By int
}

func TestActorKeepsStateAndOrder(t *testing.T) {
	_, ctx, _ := startFake(t)
	a, err := counters.Spawn(ctx, V(10))
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Ready(ctx); err != nil {
		t.Fatal(err)
	}
	refs := make([]Ref[int], 1000)
	for i := range refs {
		refs[i] = counterInc.Go(ctx, a, V(1))
	}
	got, err := GetAll(ctx, refs)
	if err != nil {
		t.Fatal(err)
	}
	for i, v := range got {
		if v != 11+i {
			t.Fatalf("call %d returned %d", i, v)
		}
	}
	must(t, 1010)(counterValue.Go(ctx, a).Get(ctx))
	must(t, 1015)(incByProxy.Go(ctx, V(proxy{a, 5})).Get(ctx))
	must(t, 1115)(incDirect.Go(ctx, V(a)).Get(ctx))
	n := 1115
	for r, err := range counterSteps.Go(ctx, a, V(3)) {
		if err != nil {
			t.Fatal(err)
		}
		n++
		must(t, n)(r.Get(ctx))
	}
	if n != 1118 {
		t.Errorf("the stream ended at %d", n)
	}
}

func TestActorErrors(t *testing.T) {
	_, ctx, _ := startFake(t)
	a, err := counters.Spawn(ctx, V(-1))
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Ready(ctx); !errors.Is(err, errMine) {
		t.Errorf("a failed constructor: %v", err)
	}
	b, err := nobody.Spawn(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Ready(ctx); !errors.Is(err, ErrInvalid) {
		t.Errorf("a nil actor: %v", err)
	}
	if _, err := counterInc.Go(ctx, ActorRef[counter]{}, V(1)).Get(ctx); !errors.Is(err, ErrInvalid) {
		t.Errorf("a zero actor: %v", err)
	}
	if _, err := counters.Spawn(t.Context(), V(1)); !errors.Is(err, ErrInvalid) {
		t.Errorf("a context of no cluster: %v", err)
	}
	c, err := counters.Spawn(ctx, V(0))
	if err != nil {
		t.Fatal(err)
	}
	must(t, 1)(counterInc.Go(ctx, c, V(1)).Get(ctx))
	if err := c.Kill(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := counterInc.Go(ctx, c, V(1)).Get(ctx); !errors.Is(err, ErrActorDied) {
		t.Errorf("a killed actor: %v", err)
	}
}

func TestNamedActors(t *testing.T) {
	_, ctx, _ := startFake(t)
	a, err := counters.Spawn(ctx, V(1), Named("prod", "hits"), MaxRestarts(-1), Detached())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := counters.Spawn(ctx, V(1), Named("prod", "hits")); !errors.Is(err, ErrNameTaken) {
		t.Errorf("the same name again: %v", err)
	}
	same, err := counters.Spawn(ctx, V(1), Named("prod", "hits"), GetIfExists())
	if err != nil || same.ID() != a.ID() {
		t.Errorf("get if exists: %v, %v, want %v", same, err, a)
	}
	must(t, 2)(counterInc.Go(ctx, same, V(1)).Get(ctx))
	found, err := GetActor[counter](ctx, "prod", "hits")
	if err != nil || found.ID() != a.ID() {
		t.Errorf("by name: %v, %v", found, err)
	}
	must(t, 3)(counterInc.Go(ctx, found, V(1)).Get(ctx))
	wrong, err := GetActor[other](ctx, "prod", "hits")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := otherMeth.Go(ctx, wrong).Get(ctx); !errors.Is(err, ErrInvalid) {
		t.Errorf("a method of another type: %v", err)
	}
	if _, err := GetActor[counter](ctx, "prod", "misses"); !errors.Is(err, ErrNotFound) {
		t.Errorf("no such name: %v", err)
	}
}

func TestActorReferenceRoundTripsInsideAny(t *testing.T) {
	_, ctx, _ := startFake(t)
	a, err := counters.Spawn(ctx, V(1))
	if err != nil {
		t.Fatal(err)
	}
	r, err := Put(ctx, map[string]any{"actor": a})
	if err != nil {
		t.Fatal(err)
	}
	got, err := r.Get(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if back, ok := got["actor"].(ActorRef[any]); !ok || fmt.Sprint(back) != a.ID() {
		t.Errorf("got %#v", got)
	}
	typed, err := Put(ctx, proxy{A: a, By: 1})
	if err != nil {
		t.Fatal(err)
	}
	must(t, 2)(incByProxy.Go(ctx, typed).Get(ctx))
}
