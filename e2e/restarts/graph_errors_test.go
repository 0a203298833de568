package restarts

import (
	"errors"
	"syscall"
	"testing"

	"mobula"
	"mobula/e2e/harness"
	"mobula/graph/spec"
)

// What the error of a graph's task has references to lives as long as the program has the error.
func TestReferencesInErrorsOfGraphsLive(t *testing.T) {
	ctx, cancel := harness.Limit(t)
	defer cancel()
	p := harness.MustLaunch(t, harness.NodeConfig{Dir: harness.TempDir(t), CPUs: 2, Store: 32 * harness.MiB, StoreDir: harness.TempDir(t)})
	c, ctx := harness.Connect(t, ctx, p)
	for name, x := range map[string]spec.Executor{"processes": mobula.Processes(1), "distributed": mobula.Distributed()} {
		for _, size := range []int{100, harness.MiB} {
			g := spec.New()
			first := g.Task(spec.K("first"), lack, size)
			then := g.Task(spec.K("then"), lackTaken, first)
			_, err := spec.Get[int](ctx, x, g, then)
			var f *spec.TaskError
			if !errors.As(err, &f) || f.Key != spec.K("first") {
				t.Fatalf("%s: %v", name, err)
			}
			stillHas(t, ctx, name, err, size)
			_, err = spec.Get[int](ctx, x, g, first)
			stillHas(t, ctx, name+", of what is wanted", err, size)
		}
	}
	for _, pid := range harness.WorkersOf(p.Address) { // which collect when they like
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
			t.Error(err)
		}
	}
	empty(t, ctx, c)
}
