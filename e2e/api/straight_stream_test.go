package api

import (
	"context"
	"errors"
	"iter"
	"testing"

	"mobula"
	"mobula/mobulatest"
)

// Pages yields numbers up to n: the first is there at once, the others when the gate has been opened, and each with so many bytes.
func (g *gate) Pages(ctx context.Context, n, bytes int) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		for i := range n {
			if i == 1 {
				if _, err := g.Wait(ctx); err != nil {
					yield(nil, err)
					return
				}
			}
			page := make([]byte, 1+bytes)
			page[0] = byte(i)
			if !yield(page, nil) {
				return
			}
		}
	}
}

var gatePages = mobula.RegisterStreamMethod2(gates, "Pages", (*gate).Pages)

// A stream of an actor goes in its place among the calls, and holds up nothing: what is called behind it runs beside it, where the actor runs several calls at once.
func TestAStreamOfAnActorHoldsUpNoCall(t *testing.T) {
	c := mobulatest.Start(t, mobula.WithCPUs(2))
	ctx := c.Context(t.Context())
	for _, bytes := range []int{0, 200_000} { // inline, and stored
		g, err := gates.Spawn(ctx, mobula.MaxConcurrency(2))
		if err != nil {
			t.Fatal(err)
		}
		s := gatePages.Start(ctx, g, mobula.V(6), mobula.V(bytes), mobula.Backpressure(2))
		item := func(i int) {
			t.Helper()
			r, ok, err := s.Next(ctx)
			if err != nil || !ok {
				t.Fatalf("item %d of %d bytes: %v, %v", i, bytes, ok, err)
			}
			if b := must(r.Get(ctx))(t); len(b) != 1+bytes || int(b[0]) != i {
				t.Errorf("item %d has %d bytes and is number %d", i, len(b), b[0])
			}
			r.Release()
		}
		item(0)
		if n, err := gateOpen.Go(ctx, g, mobula.V(1), mobula.V([]byte{1})).Get(ctx); err != nil || n != 1 {
			t.Fatalf("the call behind the stream came to %d, %v", n, err)
		}
		for i := 1; i < 6; i++ {
			item(i)
		}
		if _, ok, err := s.Next(ctx); ok || err != nil {
			t.Errorf("after the last item: %v, %v", ok, err)
		}
		s = gatePages.Start(ctx, g, mobula.V(6), mobula.V(bytes), mobula.Backpressure(1)) // nobody reads it to its end
		item(0)
		s.Close()
		waits := gateWait.Go(ctx, g)
		s = gatePages.Start(ctx, g, mobula.V(2), mobula.V(bytes))
		item(0)
		if err := g.Kill(ctx); err != nil {
			t.Fatal(err)
		}
		if _, _, err := s.Next(ctx); !errors.Is(err, mobula.ErrActorDied) {
			t.Errorf("a stream of an actor that was killed ends with %v", err)
		}
		if _, err := waits.Get(ctx); !errors.Is(err, mobula.ErrActorDied) {
			t.Errorf("a call of it ends with %v", err)
		}
		waits.Release()
		g.Release()
	}
}
