package mobula_test

import (
	"fmt"

	"mobula"
)

// Filters name the JSON fields of rows, and rows come in pages.
func ExampleCluster_ListTasks() {
	c, ctx, done := start()
	defer done()

	if _, err := add.Go(ctx, mobula.V(1), mobula.V(2), mobula.Label("sum")).Get(ctx); err != nil {
		fmt.Println(err)
	}
	page, err := c.ListTasks(ctx, mobula.Query{Filters: []mobula.Filter{{Field: "name", Value: "sum"}}, Limit: 10})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, t := range page.Rows {
		fmt.Println(t.Name, t.Func, t.State, t.Attempt)
	}
	// Output: sum example/add FINISHED 1
}

// Explain says why a task does not run.
func ExampleCluster_Explain() {
	c, ctx, done := start()
	defer done()

	slow := untilCancelled.Go(ctx)
	waits := add.Go(ctx, slow, mobula.V(1))
	e, err := c.Explain(ctx, waits.ID())
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(e.Kind, e.Object.State, e.Next != nil)
	_ = slow.Cancel(ctx)
	// Output: object PENDING true
}

func ExampleCluster_Status() {
	c, ctx, done := start()
	defer done()

	s, err := c.Status(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(s.Resources["CPU"].Total, s.Store.Limit>>20, len(s.Silent))
	// Output: 2 64 0
}
