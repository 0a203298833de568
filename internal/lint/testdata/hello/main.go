// Hello is as small as a program can be: it starts a node and runs one task. size_test.go holds what it links.
package main

import (
	"context"
	"fmt"

	"mobula"
)

var add = mobula.Register2("hello/add", func(_ context.Context, a, b int) (int, error) { return a + b, nil })

func main() {
	mobula.Main(func(ctx context.Context, _ *mobula.Cluster) error {
		n, err := add.Go(ctx, mobula.V(1), mobula.V(2)).Get(ctx)
		if err != nil {
			return err
		}
		fmt.Println(n)
		return nil
	})
}
