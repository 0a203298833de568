package sim

import (
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	"mobula/graph"
	"mobula/internal/testkit"
)

// maker makes graphs by hand.
type maker struct {
	tasks []graph.Task
	bytes []int64
	times []time.Duration
}

func (m *maker) add(group string, bytes int64, d time.Duration, deps ...int32) int32 {
	i := int32(len(m.tasks))
	m.tasks = append(m.tasks, graph.Task{Key: fmt.Sprintf("('%s', %d)", group, i), Deps: deps})
	m.bytes = append(m.bytes, bytes)
	m.times = append(m.times, d)
	return i
}

// workload takes every task that nothing needs as wanted.
func (m *maker) workload(t testing.TB, order []int32) *Workload {
	t.Helper()
	used := make([]bool, len(m.tasks))
	for i := range m.tasks {
		for _, d := range m.tasks[i].Deps {
			used[d] = true
		}
	}
	var wanted []int32
	for i := range used {
		if !used[i] {
			wanted = append(wanted, int32(i))
		}
	}
	g, err := graph.New(m.tasks, order, wanted)
	if err != nil {
		t.Fatal(err)
	}
	return &Workload{Name: t.Name(), Graph: g, Bytes: m.bytes, Times: m.times}
}

const (
	mb = int64(1e6)
	ms = time.Millisecond
)

// TestFigure is the figure of the document that asked for this: a and b must meet on one worker.
func TestFigure(t *testing.T) {
	m := &maker{}
	for range 2 {
		var half [2]int32
		for k := range half {
			root := m.add("root", 10*mb, 100*ms)
			half[k] = m.add("step", 10*mb, 50*ms, root)
		}
		m.add("join", mb, 10*ms, half[0], half[1])
	}
	w := m.workload(t, nil)
	for _, threads := range []int{1, 2} {
		cfg := w.Config(graph.Both, 2, threads)
		seen := make(map[graph.WorkerID]int)
		cfg.Hear = func(_ time.Duration, e graph.Effect) {
			if r, ok := e.(graph.Run); ok {
				seen[r.Worker]++
			}
		}
		if r := mustRun(t, cfg); r.Moved != 0 || r.Copies != 0 {
			t.Errorf("%d threads: %d bytes move in %d copies", threads, r.Moved, r.Copies)
		}
		if seen[0] != 5 || seen[1] != 5 {
			t.Errorf("%d threads: the work is not shared: %v", threads, seen)
		}
	}
}

// TestInterleaved adds two collections elementwise: a[i] and b[i] must meet on one worker, in
// whatever order they come.
func TestInterleaved(t *testing.T) {
	const n = 100
	build := func() *maker {
		m := &maker{}
		for range 2 * n {
			m.add([]string{"a", "b"}[len(m.tasks)/n], 10*mb, 100*ms)
		}
		for i := range int32(n) {
			m.add("add", mb, 20*ms, i, n+i)
		}
		return m
	}
	orders := map[string]func(i int32) int32{ // as dask.order gives it, and one family after the other
		"depth first": func(i int32) int32 { return 3*(i%n) + i/n },
		"layers":      func(i int32) int32 { return i },
		"backwards":   func(i int32) int32 { return 3*n - 1 - i },
	}
	for name, rank := range orders {
		for _, workers := range []int{2, 3, 7} {
			m := build()
			order := make([]int32, len(m.tasks))
			for i := range order {
				order[i] = rank(int32(i))
			}
			w := m.workload(t, order)
			both := mustRun(t, w.Config(graph.Both, workers, 2))
			if both.Moved != 0 {
				t.Errorf("%s, %d workers: %d MB move", name, workers, both.Moved/mb)
			}
			alone := mustRun(t, w.Config(graph.Withhold, workers, 2))
			if alone.Moved == 0 || both.Makespan > alone.Makespan*11/10 {
				t.Errorf("%s, %d workers: withholding alone moves %d in %v, both take %v", name, workers, alone.Moved, alone.Makespan, both.Makespan)
			}
		}
	}
}

// tree is a sum of n chunks, four at a time.
func tree(n int, bytes int64, d func(i int) time.Duration) *maker {
	m := &maker{}
	var level []int32
	for i := range n {
		level = append(level, m.add("load", bytes, d(i)))
	}
	for depth := 0; len(level) > 1; depth++ {
		var next []int32
		for i := 0; i < len(level); i += 4 {
			next = append(next, m.add(fmt.Sprintf("sum%d", depth), bytes, 20*ms, level[i:min(i+4, len(level))]...))
		}
		level = next
	}
	return m
}

// depthFirst is the order in which a tree is best summed.
func depthFirst(m *maker) []int32 {
	order := make([]int32, len(m.tasks))
	next := int32(0)
	var visit func(int32)
	visit = func(t int32) {
		for _, d := range m.tasks[t].Deps {
			visit(d)
		}
		order[t] = next
		next++
	}
	visit(int32(len(m.tasks) - 1))
	return order
}

func even(int) time.Duration { return 100 * ms }

func TestSaturation(t *testing.T) {
	w := load(t, "double_diff")
	for _, p := range []graph.Policy{graph.Both, graph.Withhold} {
		at := func(saturation float64) *Report {
			cfg := w.Config(p, 4, 2)
			cfg.Core.Saturation = saturation
			return mustRun(t, cfg)
		}
		zero, usual, inf := at(0), at(graph.DefaultSaturation), at(math.Inf(1))
		if inf.Peak < 3*usual.Peak {
			t.Errorf("%v: %d MB at inf, %d at 1.1: nothing is overproduced", p, inf.Peak/mb, usual.Peak/mb)
		}
		if zero.Peak > usual.Peak {
			t.Errorf("%v: %d MB at 0, %d at 1.1", p, zero.Peak/mb, usual.Peak/mb)
		}
	}
}

// TestInfOverproduces counts what is sent: withheld, roots go out as slots come free; with inf, at once.
func TestInfOverproduces(t *testing.T) {
	m := tree(256, 10*mb, even)
	w := m.workload(t, depthFirst(m))
	for _, p := range []graph.Policy{graph.Both, graph.Withhold, graph.CoAssign} {
		for _, saturation := range []float64{graph.DefaultSaturation, math.Inf(1)} {
			cfg := w.Config(p, 2, 2)
			cfg.Core.Saturation = saturation
			early := 0
			cfg.Hear = func(at time.Duration, e graph.Effect) {
				if _, ok := e.(graph.Run); ok && at == 0 {
					early++
				}
			}
			mustRun(t, cfg)
			all := p == graph.CoAssign || math.IsInf(saturation, 1)
			if all && early != 256 || !all && early > 2*3 {
				t.Errorf("%v at %v: %d roots are sent at once", p, saturation, early)
			}
		}
	}
}

// TestRootsInMemory has each root's output be needed by one short task: there are never many more of them than slots.
func TestRootsInMemory(t *testing.T) {
	m := &maker{}
	var means []int32
	for i := range 200 {
		x := m.add("load", 10*mb, even(i))
		means = append(means, m.add("mean", 0, ms, x))
	}
	m.add("end", 0, ms, means...)
	w := m.workload(t, nil)
	for _, p := range []graph.Policy{graph.Both, graph.Withhold} {
		for _, threads := range []int{1, 2, 4, 16} {
			slots := int64(math.Ceil(graph.DefaultSaturation * float64(threads)))
			if r := mustRun(t, w.Config(p, 1, threads)); r.Peak > 2*slots*10*mb {
				t.Errorf("%v, %d threads: %d outputs of root tasks are in memory, of %d slots", p, threads, r.Peak/(10*mb), slots)
			}
		}
	}
}

func TestBudget(t *testing.T) {
	m := tree(256, 10*mb, even)
	w := m.workload(t, depthFirst(m))
	at := func(set func(*Config)) *Report {
		cfg := w.Config(graph.Both, 8, 2)
		set(&cfg)
		return mustRun(t, cfg)
	}
	free := at(func(*Config) {})
	budget := free.Peak / 2
	half := at(func(c *Config) { c.Core.Budget = budget })
	told := at(func(c *Config) { c.Memory = budget * 10 / 6 / 8 }) // 60 % of it, over 8 workers
	if half.Peak > budget*5/4 || told.Peak > budget*5/4 {
		t.Errorf("%d MB with a budget of %d, %d where workers told it", half.Peak/mb, budget/mb, told.Peak/mb)
	}
	if one := at(func(c *Config) { c.Core.Budget = 1 }); one.Peak > free.Peak/2 || one.Makespan < free.Makespan {
		t.Errorf("%d MB in %v with a budget of nothing", one.Peak/mb, one.Makespan)
	}
}

// TestStealing puts work on one worker: first by locality, then because some families take longer.
func TestStealing(t *testing.T) {
	ideal := func(m *maker, threads int) time.Duration {
		var sum time.Duration
		for _, d := range m.times {
			sum += d
		}
		return sum / time.Duration(threads)
	}
	for _, p := range []graph.Policy{graph.Both, graph.Withhold, graph.CoAssign} {
		m := &maker{}
		root := m.add("load", mb, 100*ms)
		var parts []int32
		for i := range 160 { // groups of one task each: no root tasks
			parts = append(parts, m.add(fmt.Sprintf("part%d", i), mb, time.Duration(500+i%7*100)*ms, root))
		}
		m.add("end", mb, ms, parts...)
		r := mustRun(t, m.workload(t, nil).Config(p, 4, 2))
		if most := ideal(m, 8) * 13 / 10; r.Makespan > most || r.Stolen == 0 {
			t.Errorf("%v: %v, 1.3 times the ideal is %v; %d stolen", p, r.Makespan, most, r.Stolen)
		}
	}
	m := tree(256, mb, func(i int) time.Duration {
		if i < 64 {
			return 2000 * ms
		}
		return 100 * ms
	})
	r := mustRun(t, m.workload(t, depthFirst(m)).Config(graph.Both, 4, 2))
	if most := ideal(m, 8) * 13 / 10; r.Makespan > most {
		t.Errorf("uneven homes: %v, 1.3 times the ideal is %v", r.Makespan, most)
	}
}

// TestFaults kills, pauses and adds workers while a graph runs; all of it is delivered.
func TestFaults(t *testing.T) {
	m := tree(256, 10*mb, even)
	w := m.workload(t, depthFirst(m))
	for _, p := range []graph.Policy{graph.Both, graph.Withhold, graph.CoAssign} {
		for _, seed := range testkit.Seeds(t, 20) {
			cfg := w.Config(p, 4, 2)
			cfg.Seed = seed
			r := seed
			for i := range 6 {
				r = mix(r + 1)
				cfg.Faults = append(cfg.Faults, Fault{
					At:     time.Duration(r % uint64(4*time.Second)),
					Worker: int(r >> 40 % 4),
					Kind:   []FaultKind{Kill, Leave, Pause, Resume, Join, Join}[i],
				})
			}
			for i := range 4 {
				cfg.Faults = append(cfg.Faults, Fault{At: 5 * time.Second, Worker: i, Kind: Resume})
			}
			if r := mustRun(t, cfg); len(r.Results) == 0 {
				t.Errorf("%v, seed %d: nothing is delivered", p, seed)
			}
		}
	}
}

func TestFailureIsToldWithItsChain(t *testing.T) {
	m := tree(64, mb, even)
	cfg := m.workload(t, depthFirst(m)).Config(graph.Both, 2, 2)
	broken := errors.New("broken")
	cfg.Fails = func(task int32, _ int) error {
		if task == 17 {
			return broken
		}
		return nil
	}
	r, err := Run(cfg)
	if err != nil {
		t.Fatal(err)
	}
	top := int32(len(m.tasks) - 1)
	f, ok := r.Failures[top]
	if !ok || f.Err != broken || f.Chain[len(f.Chain)-1] != 17 || len(f.Chain) != 4 {
		t.Errorf("failures %+v", r.Failures)
	}
}

func TestSameSeedSameRun(t *testing.T) {
	w := load(t, "vorticity")
	cfg := w.Config(graph.Both, 4, 2)
	cfg.Sample = 10 * time.Second
	a, b := mustRun(t, cfg), mustRun(t, cfg)
	if a.Peak != b.Peak || a.Moved != b.Moved || a.Makespan != b.Makespan || a.Steps != b.Steps {
		t.Errorf("%+v and %+v", a, b)
	}
	if len(a.Timeline) < 5 || a.Timeline[1].Processing == 0 || a.Timeline[1].Queued == 0 || a.Timeline[1].Bytes == 0 {
		t.Errorf("timeline %+v", a.Timeline)
	}
}
