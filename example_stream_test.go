package mobula_test

import (
	"context"
	"fmt"
	"iter"

	"mobula"
)

var squares = mobula.RegisterStream1("example/squares", func(_ context.Context, n int) iter.Seq2[int, error] {
	return func(yield func(int, error) bool) {
		for i := range n {
			if !yield(i*i, nil) {
				return
			}
		}
	}
})

// The consumer has the first item before the last one exists. Leaving the loop cancels the task.
func ExampleRegisterStream1() {
	_, ctx, done := start()
	defer done()

	for r, err := range squares.Go(ctx, mobula.V(1000), mobula.Backpressure(2)) { // two items ahead at most
		if err != nil {
			fmt.Println(err)
			return
		}
		x, err := r.Get(ctx)
		fmt.Println(x, err)
		if x == 4 {
			break
		}
	}
	// Output:
	// 0 <nil>
	// 1 <nil>
	// 4 <nil>
}
