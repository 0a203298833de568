package e2e

import (
	"context"
	"testing"

	"mobula"
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
			ctx, cancel := limit(t)
			defer cancel()
			cfg := nodeConfig{Dir: tempDir(t), CPUs: 2, Store: 32 << 20, StoreDir: tempDir(t)}
			p := mustLaunch(t, cfg)
			c, ctx := connect(t, ctx, p)
			g := spec.New()
			const n = 30
			var parts []spec.Key
			for i := range n {
				at := g.Task(spec.K("first", i), sleepy, 20, i)
				parts = append(parts, g.Task(spec.K("second", i), sleepy, 20, at))
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
			eventually(t, ctx, "some tasks have ended", func() bool {
				s, err := c.Status(ctx)
				return err == nil && s.Tasks["FINISHED"] > 5
			})
			p.kill(t)
			mustLaunch(t, cfg)
			if r := <-got; r.err != nil || r.n != n*(n-1)/2 {
				t.Errorf("got %d, %v", r.n, r.err)
			}
		})
	}
}
