package restarts

import (
	"context"
	"testing"

	"mobula"
	"mobula/e2e/harness"
	"mobula/graph/spec"
)

var total = mobula.Register1("e2e/total", func(_ context.Context, xs []int) (int, error) {
	n := 0
	for _, x := range xs {
		n += x
	}
	return n, nil
})

// The node process is killed while it runs a graph, and started again: the graph goes on.
func TestNodeIsKilledUnderGraphs(t *testing.T) {
	for name, x := range map[string]spec.Executor{"processes": mobula.Processes(2), "distributed": mobula.Distributed()} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := harness.Limit(t)
			defer cancel()
			cfg := harness.NodeConfig{Dir: harness.TempDir(t), CPUs: 2, Store: 32 << 20, StoreDir: harness.TempDir(t)}
			p := harness.MustLaunch(t, cfg)
			c, ctx := harness.Connect(t, ctx, p)
			g := spec.New()
			const n = 30
			var parts []spec.Key
			for i := range n {
				at := g.Task(spec.K("first", i), harness.Sleepy, 20, i)
				parts = append(parts, g.Task(spec.K("second", i), harness.Sleepy, 20, at))
			}
			whole := g.Task(spec.K("whole"), total, parts)
			type result struct {
				n   int
				err error
			}
			got := make(chan result, 1)
			go func() {
				n, err := spec.Get[int](ctx, x, g, whole)
				got <- result{n, err}
			}()
			harness.Eventually(t, ctx, "some tasks have ended", func() bool {
				s, err := c.Status(ctx)
				return err == nil && s.Tasks["FINISHED"] > 5
			})
			p.Kill(t)
			harness.MustLaunch(t, cfg)
			if r := <-got; r.err != nil || r.n != n*(n-1)/2 {
				t.Errorf("got %d, %v", r.n, r.err)
			}
		})
	}
}
