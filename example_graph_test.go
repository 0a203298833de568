package mobula_test

import (
	"context"
	"fmt"

	"mobula"
	"mobula/graph/spec"
)

var (
	exampleSquare = mobula.Register1("example/square", func(_ context.Context, x float64) (float64, error) { return x * x, nil })
	exampleSum    = mobula.Register1("example/sum", func(_ context.Context, xs []float64) (float64, error) {
		total := 0.0
		for _, x := range xs {
			total += x
		}
		return total, nil
	})
)

// A graph gives the same result here and on the node that it is shipped to.
func ExampleDistributed() {
	g := spec.New()
	var squares []spec.Key
	for i := range 4 {
		squares = append(squares, g.Task(spec.K("square", i), exampleSquare, i))
	}
	sum := g.Task(spec.K("total"), exampleSum, squares)

	ctx := context.Background()
	c, err := mobula.Start(ctx, mobula.WithStore(64<<20))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close(ctx)
	for _, x := range []spec.Executor{spec.Sync(), mobula.Distributed()} {
		fmt.Println(spec.Get[float64](c.Context(ctx), x, g, sum))
	}
	// Output:
	// 14 <nil>
	// 14 <nil>
}
