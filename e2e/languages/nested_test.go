package languages

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"

	"mobula"
	"mobula/e2e/harness"
	"mobula/internal/testkit"
)

var quicksort mobula.Func2[[]int64, int, []int64]

func init() { quicksort = mobula.Register2("e2e/quicksort", sortParts) } // which calls it

// sortParts sorts what is small, and has two tasks sort what is below and above the middle one.
func sortParts(ctx context.Context, a []int64, cut int) ([]int64, error) {
	if len(a) <= cut {
		a = slices.Clone(a)
		slices.Sort(a)
		return a, nil
	}
	p := a[len(a)/2]
	var below, same, above []int64
	for _, x := range a {
		switch {
		case x < p:
			below = append(below, x)
		case x > p:
			above = append(above, x)
		default:
			same = append(same, x)
		}
	}
	first, second := quicksort.Go(ctx, mobula.V(below), mobula.V(cut)), quicksort.Go(ctx, mobula.V(above), mobula.V(cut))
	defer first.Release()
	defer second.Release()
	low, err := first.Get(ctx)
	if err != nil {
		return nil, err
	}
	high, err := second.Get(ctx)
	return slices.Concat(low, same, high), err
}

// Tasks that wait for tasks that wait for tasks, on fewer CPUs than wait.
func TestNestedQuicksortOnTwoCPUs(t *testing.T) {
	ctx, cancel := harness.Limit(t)
	defer cancel()
	c, err := mobula.Start(ctx, mobula.WithCPUs(2), mobula.WithProcesses(), mobula.WithDir(harness.TempDir(t)), mobula.WithLogger(harness.Quiet()))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := c.Close(context.WithoutCancel(ctx)); err != nil {
			t.Error(err)
		}
	}()
	ctx = c.Context(ctx)
	for _, seed := range testkit.Seeds(t, harness.Size(3, 200)) {
		rng := rand.New(rand.NewPCG(seed, 1))
		a := make([]int64, 200_000)
		for i := range a {
			a[i] = rng.Int64()
		}
		got, err := quicksort.Go(ctx, mobula.V(a), mobula.V(2000)).Get(ctx)
		if err != nil {
			t.Fatal(err)
		}
		slices.Sort(a)
		if !slices.Equal(got, a) {
			t.Fatalf("seed %d: not sorted", seed)
		}
	}
}
