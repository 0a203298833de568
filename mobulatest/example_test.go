package mobulatest_test

import (
	"context"
	"fmt"
	"testing"

	"mobula"
	"mobula/mobulatest"
)

// where tells on which node it runs.
var where = mobula.Register0("example/where", func(ctx context.Context) (string, error) {
	rc, err := mobula.GetRuntimeContext(ctx)
	return rc.NodeID, err
})

var t *testing.T // that of the test

// What becomes of work when a node is lost. The package's TestMain is mobulatest.Main.
func ExampleCluster() {
	nodes := mobulatest.Cluster(t, 3) // each with one CPU, in this process
	ctx := nodes.Connect(0).Context(t.Context())

	on1, err := where.Go(ctx, mobula.OnNode(nodes.ID(1))).Get(ctx)
	fmt.Println(on1 == nodes.ID(1), err)

	lost := where.Go(ctx, mobula.PreferNode(nodes.ID(2)))
	nodes.Kill(2) // as if its machine were lost
	fmt.Println(lost.Get(ctx))

	nodes.Add(mobula.WithLabels(map[string]string{"disk": "ssd"}))
	fmt.Println(where.Go(ctx, mobula.Labels{"disk": "ssd"}).Get(ctx))
}

// What becomes of work when a node is cut off, comes back, and is lost and started again.
func ExampleNodes_Isolate() {
	nodes := mobulatest.Cluster(t, 3)
	ctx := nodes.Connect(0).Context(t.Context())

	nodes.Isolate(2) // as if its cable were pulled: nobody is told
	waits := where.Go(ctx, mobula.OnNode(nodes.ID(2)))
	nodes.Heal() // within some 5 s: nothing is lost
	fmt.Println(waits.Get(ctx))

	nodes.Isolate(2)
	nodes.Settle() // 5 to 9 s: the others have given it up
	nodes.Heal()
	nodes.Settle()   // it has found that its life is over, and has ended
	nodes.Restart(2) // a new life, with the same id
	fmt.Println(where.Go(ctx, mobula.OnNode(nodes.ID(2))).Get(ctx))
}
