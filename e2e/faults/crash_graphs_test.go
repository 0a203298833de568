package faults

import (
	"context"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"mobula"
	"mobula/actors"
	"mobula/e2e/harness"
	"mobula/graph/spec"
	"mobula/internal/node"
	"mobula/internal/testkit"
)

var sumBlocks = mobula.Register2("e2e/sum-blocks", func(_ context.Context, a, b []byte) ([]int, error) {
	n := 0
	for i := range a {
		n += int(a[i]) + int(b[i])
	}
	return []int{n}, nil
})

// graphLoad runs the same graph again and again: blocks of a MiB, summed in pairs from the first with the first on, and again from
// the first with the last on, so that all blocks, twice the store, have to be kept; then the sums are added.
type graphLoad struct {
	runs atomic.Int64
	wg   sync.WaitGroup
	stop chan struct{}
}

func runGraphs(t *testing.T, ctx context.Context, side int) *graphLoad {
	l := &graphLoad{stop: make(chan struct{})}
	const pairs = 16
	for range side {
		l.wg.Go(func() {
			for {
				select {
				case <-l.stop:
					return
				default:
				}
				g := spec.New()
				var as, bs, sums []spec.Key
				want := 0
				for i := range pairs {
					as = append(as, g.Task(spec.K("a", i), harness.Blocks, 1, i))
					bs = append(bs, g.Task(spec.K("b", i), harness.Blocks, 1, i+1))
					want += 2 * (2*i + 1) << 20
				}
				for i, a := range as {
					sums = append(sums, g.Task(spec.K("sum", i), sumBlocks, a, bs[i]), g.Task(spec.K("across", i), sumBlocks, a, bs[pairs-1-i]))
				}
				whole := g.Task(spec.K("whole"), harness.Totals, sums)
				if got, err := spec.Get[int](ctx, mobula.Distributed(), g, whole); err != nil || got != want {
					t.Errorf("a graph gave %d, %v; want %d", got, err, want)
					return
				}
				l.runs.Add(1)
			}
		})
	}
	return l
}

func (l *graphLoad) end() {
	close(l.stop)
	l.wg.Wait()
}

// What runs a graph, and all that it leans on, panic in the middle of a step at a random message while graphs run.
func TestComponentsCrashUnderGraphs(t *testing.T) {
	faults := &actors.Faults{}
	harness.BothModes(t, node.Config{CPUs: 2, StoreBytes: 16 << 20, Faults: faults}, func(t *testing.T, ctx context.Context, n *node.Node) {
		r := testkit.Rand(t)
		l := runGraphs(t, ctx, 2)
		crashes := 0
		for range harness.Size(2, 20) {
			for _, kind := range []string{"graph", "owner", "scheduler", "objectstore", "spiller"} {
				before, runs := n.Restarts()[kind], l.runs.Load()
				remove := faults.Inject(actors.Fault{Kind: kind, Nth: 1 + r.IntN(40), Action: actors.PanicMidStep})
				harness.Eventually(t, ctx, kind+" crashed and was restarted", func() bool { return n.Restarts()[kind] > before || t.Failed() })
				remove()
				crashes++
				harness.Eventually(t, ctx, "graphs end after a crash of "+kind, func() bool { return l.runs.Load() > runs || t.Failed() })
			}
		}
		l.end()
		t.Logf("%d graphs, %d crashes", l.runs.Load(), crashes)
		harness.Eventually(t, ctx, "no graph is left", func() bool { return !hasKind(n, "graph") || t.Failed() })
	})
}

// Workers are killed while they run tasks of graphs.
func TestWorkersAreKilledUnderGraphs(t *testing.T) {
	ctx, cancel := harness.Limit(t)
	defer cancel()
	n, ctx := harness.StartNode(t, ctx, node.Config{CPUs: 2, StoreBytes: 16 << 20, Processes: true})
	l := runGraphs(t, ctx, 2)
	for killed := 0; killed < harness.Size(6, 40) && !t.Failed(); {
		before := l.runs.Load()
		harness.Eventually(t, ctx, "graphs end after a kill", func() bool { return l.runs.Load() > before || t.Failed() })
		for _, pid := range harness.WorkersOf(n.Address()) {
			if err := syscall.Kill(pid, syscall.SIGKILL); err == nil {
				killed++
				break
			}
		}
	}
	l.end()
}
