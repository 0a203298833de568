package spec_test

import (
	"context"
	"fmt"

	"mobula/graph/spec"
)

// The mean of two parts of a collection.
func Example() {
	square := func(x float64) float64 { return x * x }
	sum := func(_ context.Context, xs []float64) (float64, error) {
		total := 0.0
		for _, x := range xs {
			total += x
		}
		return total, nil
	}
	mean := func(sums []float64, n float64) float64 { return (sums[0] + sums[1]) / n }

	g := spec.New()
	x := g.Data(spec.K("x"), 3)
	a := g.Task(spec.K("square", 0), square, x) // an argument that is a key stands for that node's value
	b := g.Task(spec.K("square", 1), square, 4.0)
	low := g.Task(spec.K("sum", 0), sum, []spec.Key{a, b})
	high := g.Task(spec.K("sum", 1), sum, []any{a, b, 25}) // lists nest, and hold keys and values
	sums := g.List(spec.K("sums"), low, high)
	m := g.Task(spec.K("mean"), mean, sums, 5)
	result := g.Alias(spec.K("result"), m)

	ctx := context.Background()
	fmt.Println(spec.Get[float64](ctx, spec.Threads(2), g, result))
	fmt.Println(spec.Get[[]float64](ctx, spec.Sync(), g, []spec.Key{a, low, high}))

	_, err := spec.Get[float64](ctx, spec.Sync(), g, spec.K("nothing"))
	fmt.Println(err)
	// Output:
	// 15 <nil>
	// [9 25 50] <nil>
	// graph: "nothing" is wanted and not in the graph
}
