package sim

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"mobula/graph"
	"mobula/graph/order"
)

var workloads = []string{"anom_mean", "basic_sum", "double_diff", "vorticity", "dataframe_align"}

const threads = 2 // of each worker, as in the benchmarks' cluster

func load(t testing.TB, name string) *Workload {
	t.Helper()
	f, err := os.Open(filepath.Join("..", "testdata", name+".json.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	w, err := Read(f)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func mustRun(t testing.TB, cfg Config) *Report {
	t.Helper()
	r, err := Run(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Failures) > 0 {
		t.Fatalf("failures: %v", r.Failures)
	}
	return r
}

// TestRecordedWorkloads is what withholding together with co-assignment is for: on each of the graphs
// by which Dask's withholding was judged it holds no more than withholding alone and moves no more than
// co-assignment alone, without taking much longer.
func TestRecordedWorkloads(t *testing.T) {
	for _, name := range workloads {
		w := load(t, name)
		for _, n := range []int{2, 4, 48} {
			for seed := range uint64(3) {
				t.Run(fmt.Sprintf("%s/%d/%d", name, n, seed), func(t *testing.T) { compare(t, w, n, seed) })
			}
		}
	}
}

// TestOwnOrder is the same test with this project's order of the graphs. Dask's order depends on how Python
// iterates over sets, so the two may differ.
func TestOwnOrder(t *testing.T) {
	for _, name := range workloads {
		w := load(t, name)
		tasks, names := w.Graph.Tasks(), make(order.Tasks, w.Graph.Len())
		for i := range names {
			names[i] = order.Task{Name: tasks[i].Key, Deps: tasks[i].Deps}
		}
		prio, err := order.Of(names)
		if err != nil {
			t.Fatal(err)
		}
		if w.Graph, err = graph.New(tasks, prio, w.Graph.Wanted()); err != nil {
			t.Fatal(err)
		}
		for _, n := range []int{2, 4, 48} {
			t.Run(fmt.Sprintf("%s/%d", name, n), func(t *testing.T) { compare(t, w, n, 1) })
		}
	}
}

func compare(t *testing.T, w *Workload, workers int, seed uint64) {
	by := make(map[graph.Policy]*Report)
	for _, p := range []graph.Policy{graph.Withhold, graph.CoAssign, graph.Both} {
		cfg := w.Config(p, workers, threads)
		cfg.Seed = seed
		r := mustRun(t, cfg)
		by[p] = r
		t.Logf("| %s | %d | %v | %.2f | %.2f | %.2f | %.1f |", w.Name, workers, p, gib(r.Peak), gib(r.PeakWorker), gib(r.Moved), r.Makespan.Seconds())
	}
	both, hold, co := by[graph.Both], by[graph.Withhold], by[graph.CoAssign]
	if both.Peak > hold.Peak {
		t.Errorf("holds %d bytes, withholding alone %d", both.Peak, hold.Peak)
	}
	if both.Moved > co.Moved {
		t.Errorf("moves %d bytes, co-assignment alone %d", both.Moved, co.Moved)
	}
	if both.Makespan > hold.Makespan*5/4 { // they are about memory and moves, and must not cost much time
		t.Errorf("takes %v, withholding alone %v", both.Makespan, hold.Makespan)
	}
}

func gib(n int64) float64 { return float64(n) / (1 << 30) }
