package mobulatest

import (
	"context"
	"runtime"
	"testing"

	"mobula/internal/testkit"

	"mobula"
)

// lender gives what it puts to its callers.
type lender struct{}

var (
	lenders = mobula.RegisterActor0("mobulatest/lender", func(context.Context) (*lender, error) { return &lender{}, nil })
	lends   = mobula.RegisterMethod1(lenders, "Lend", func(_ *lender, ctx context.Context, size int) (mobula.Ref[[]byte], error) {
		return mobula.Put(ctx, make([]byte, size))
	})
	fills     = mobula.RegisterMethod1(lenders, "Fill", func(_ *lender, _ context.Context, size int) ([]byte, error) { return make([]byte, size), nil })
	readsLoan = mobula.Register1("mobulatest/reads-loan", func(ctx context.Context, r mobula.Ref[[]byte]) (int, error) {
		b, err := r.Get(ctx)
		return len(b), err
	})
	takesLoan = mobula.Register1("mobulatest/takes-loan", func(_ context.Context, b []byte) (int, error) { return len(b), nil })
)

// What a job has lent to another one, whose worker on another node reads it, is freed everywhere when nobody holds it any more.
func TestACopyOfALoanIsFreed(t *testing.T) {
	c := Cluster(t, 2)
	a, b := c.Connect(0), c.Connect(0)
	own, other := limit(t, a.Context(t.Context())), limit(t, b.Context(t.Context()))
	made, err := lenders.Spawn(own, mobula.Named("loans", "lender"), mobula.OnNode(c.ID(0)))
	if err != nil {
		t.Fatal(err)
	}
	defer runtime.KeepAlive(made) // it ends with its last handle
	l, err := mobula.GetActor[lender](other, "loans", "lender")
	if err != nil {
		t.Fatal(err)
	}
	loan, err := lends.Go(other, l, mobula.V(1<<20)).Get(other)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := takesLoan.Go(other, loan, mobula.OnNode(c.ID(1))).Get(other); err != nil || n != 1<<20 {
		t.Fatal(n, err)
	}
	if n, err := readsLoan.Go(other, mobula.V(loan), mobula.OnNode(c.ID(1))).Get(other); err != nil || n != 1<<20 {
		t.Fatal(n, err)
	}
	loan.Release()
	there := c.Connect(1)
	testkit.Eventually(t, "no object left", func() bool {
		s, err := there.Status(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return s.Store.Objects == 0
	})
}
