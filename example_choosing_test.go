package mobula_test

import (
	"context"
	"errors"
	"fmt"

	"mobula"
)

// Labels say what a node is; tasks and actors say which of them they need.
func ExampleLabels() {
	ctx := context.Background()
	c, err := mobula.Start(ctx, mobula.WithStore(64<<20), mobula.WithLabels(map[string]string{"zone": "a", "disk": "nvme"}))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close(ctx)
	ctx = c.Context(ctx)

	fmt.Println(add.Go(ctx, mobula.V(1), mobula.V(2), mobula.Labels{"zone": "in(a, b)", "disk": "exists()"}).Get(ctx))
	_, err = add.Go(ctx, mobula.V(1), mobula.V(2), mobula.Labels{"zone": "!a"}).Get(ctx)
	fmt.Println(errors.Is(err, mobula.ErrUnschedulable))
	// Output:
	// 3 <nil>
	// true
}

// A preference never makes a call fail.
func ExamplePreferLabels() {
	_, ctx, done := start()
	defer done()

	fmt.Println(add.Go(ctx, mobula.V(1), mobula.V(2), mobula.PreferLabels{"zone": "b"}).Get(ctx))
	// Output: 3 <nil>
}

// A task runs on the node where the caller is, or on a node that may be gone.
func ExampleOnNode() {
	_, ctx, done := start()
	defer done()

	here, err := mobula.GetRuntimeContext(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(add.Go(ctx, mobula.V(1), mobula.V(2), mobula.OnNode(here.NodeID)).Get(ctx))
	fmt.Println(add.Go(ctx, mobula.V(1), mobula.V(2), mobula.PreferNode("77")).Get(ctx))
	// Output:
	// 3 <nil>
	// 3 <nil>
}
