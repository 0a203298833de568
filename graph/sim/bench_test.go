package sim

import (
	"testing"
	"time"

	"mobula/graph"
)

// million is a graph of a million trivial tasks: roots in fours, each four summed, and so on.
func million(t testing.TB) *Workload {
	const n = 750_000
	m := &maker{}
	names := make([]string, 12)
	level := make([]int32, 0, n)
	add := func(depth int, deps []int32) int32 {
		i := int32(len(m.tasks))
		m.tasks = append(m.tasks, graph.Task{Key: names[depth], Group: names[depth], Deps: deps})
		return i
	}
	for i := range names {
		names[i] = "level-" + string(rune('a'+i))
	}
	for range n {
		level = append(level, add(0, nil))
	}
	for depth := 1; len(level) > 1; depth++ {
		var next []int32
		for i := 0; i < len(level); i += 4 {
			next = append(next, add(depth, level[i:min(i+4, len(level))]))
		}
		level = next
	}
	return m.workload(t, depthFirst(m))
}

// independent is a million tasks that have nothing to do with each other.
func independent(t testing.TB) *Workload {
	m := &maker{}
	for range 1_000_000 {
		m.tasks = append(m.tasks, graph.Task{Key: "task", Group: "task"})
	}
	return m.workload(t, nil)
}

// BenchmarkMillion runs a million tasks in simulation, 4 workers, from the checked graph to the last result.
func BenchmarkMillion(b *testing.B) {
	for name, make := range map[string]func(testing.TB) *Workload{"tree": million, "independent": independent} {
		w := make(b)
		for _, p := range []graph.Policy{graph.Both, graph.Withhold, graph.CoAssign} {
			b.Run(name+"/"+p.String(), func(b *testing.B) {
				steps := 0
				for b.Loop() {
					cfg := w.Config(p, 4, 8)
					cfg.Size = func(int32) int64 { return 1000 }
					cfg.Duration = func(int32) time.Duration { return time.Millisecond }
					cfg.Jitter = 0
					r := mustRun(b, cfg)
					steps += r.Steps
				}
				b.ReportMetric(float64(steps)/b.Elapsed().Seconds(), "steps/s")
				b.ReportMetric(float64(w.Graph.Len()*b.N)/b.Elapsed().Seconds(), "tasks/s")
			})
		}
	}
}

// BenchmarkGraph makes the graph of a million tasks: checks, links and ranks.
func BenchmarkGraph(b *testing.B) {
	w := million(b)
	tasks := make([]graph.Task, w.Graph.Len())
	for i := range tasks {
		tasks[i] = graph.Task{Key: "k", Group: w.Graph.Group(int32(i)), Deps: w.Graph.Deps(int32(i))}
	}
	for b.Loop() {
		if _, err := graph.New(tasks, nil, nil); err != nil {
			b.Fatal(err)
		}
	}
}
