package cluster

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"mobula/internal/ids"
	"mobula/raylet/sched"
	"mobula/wire"
)

// A report has the load, adds up what waits of one shape, and takes no memory the second time.
func TestReporter(t *testing.T) {
	one := []wire.Resource{{Name: sched.CPU, Amount: 1000}}
	l := sched.Load{Total: one, Free: []wire.Resource{{Name: sched.CPU, Amount: 250}}, Last: 7, Paused: true, Waiting: []sched.Waiting{
		{Opts: &wire.TaskOptions{Func: "a"}, N: 3}, {Opts: &wire.TaskOptions{Func: "b"}, N: 4}, {Opts: &wire.TaskOptions{Func: "c", Spread: true}, N: 1},
		{Opts: &wire.TaskOptions{Func: "d", Resources: []wire.Resource{{Amount: 1}}}, N: 1},
	}}
	r := NewReporter(3, map[string]string{"zone": "a"}, 40)
	n := r.Report(&l, Draining, Store{Limit: 9, Held: 2}, true)
	want := "{3 41 1 [{CPU 1000}] [{CPU 250}] map[zone:a] {9 2} true [{CPU 1 7} {CPU 1, spread 1}] 7 true}"
	if got := fmt.Sprint(*n); got != want {
		t.Errorf("the report is %s, want %s", got, want)
	}
	if n := testing.AllocsPerRun(100, func() { r.Report(&l, Alive, Store{}, false) }); n > 0 {
		t.Errorf("it takes %v allocations", n)
	}
	l.Waiting = nil
	for i := range 2 * maxReported {
		l.Waiting = append(l.Waiting, sched.Waiting{Opts: &wire.TaskOptions{Resources: []wire.Resource{{Name: "r", Amount: int64(i + 1)}}}, N: 1})
	}
	if n := r.Report(&l, Alive, Store{}, false); len(n.Backlog) != maxReported || n.Version != 143 || !slices.Equal(n.Total, one) {
		t.Errorf("the next one is %+v", *n)
	}
}

// A report is told if it has news for those who choose nodes, and now and then.
func TestReportsAreToldWithNews(t *testing.T) {
	const mib = 1 << 20
	cpus := func(free int64) sched.Load {
		return sched.Load{Total: []wire.Resource{{Name: sched.CPU, Amount: 2000}}, Free: []wire.Resource{{Name: sched.CPU, Amount: free}}}
	}
	r, now, others := NewReporter(3, map[string]string{"zone": "a"}, 40), int64(time.Hour), []ids.Home{1, 2}
	load, store, nodes, chooses := cpus(2000), Store{Limit: 64 * mib}, 0, false
	told := func() bool {
		r.Report(&load, Alive, store, chooses)
		return len(r.Due(now, nodes, others, nil)) > 0
	}
	if !told() || told() {
		t.Error("want the first report told, and the same not again")
	}
	for what, change := range map[string]func(){
		"a node is new":          func() { others = append(others, 4) },
		"a CPU is taken":         func() { load = cpus(1000) },
		"a lease was made":       func() { load.Last++ },
		"memory is short":        func() { load.Paused = true },
		"there is another CPU":   func() { load.Total = []wire.Resource{{Name: sched.CPU, Amount: 3000}} },
		"it begins to choose":    func() { chooses = true },
		"half the store is full": func() { store.Held = 32 * mib },
		"some time has passed":   func() { now += int64(repeat) },
	} {
		if change(); !told() || told() {
			t.Errorf("%s: want it told once", what)
		}
	}
	if store.Held += mib; told() {
		t.Error("a 64th of the store is told")
	}
	load.Waiting = []sched.Waiting{{Opts: &wire.TaskOptions{Func: "a"}, N: 3}}
	if first, second := told(), told(); !first || !second {
		t.Error("want what waits told each time")
	}
	if load.Waiting = nil; !told() || told() {
		t.Error("want it told once that nothing waits any more")
	}
	nodes = 1000
	if load.Last++; told() {
		t.Error("of a thousand nodes each is to report ten times a second at most")
	}
	if now += int64(100 * time.Millisecond); !told() {
		t.Error("want it told a tenth of a second later")
	}
	if n := testing.AllocsPerRun(100, func() { now += int64(repeat); told() }); n > 0 {
		t.Errorf("it takes %v allocations", n)
	}
}

// Who is told what is news to nobody: a node that comes or lives again, at once; those that this node works with, and itself, every few seconds; the others
// the less often the more of them there are.
func TestWhoIsToldAReportWithoutNews(t *testing.T) {
	const nodes = 100
	r, load := NewReporter(0, nil, 0), sched.Load{Total: []wire.Resource{{Name: sched.CPU, Amount: 2000}}}
	var others []ids.Home
	for i := range ids.Home(nodes) {
		others = append(others, i+1)
	}
	due := func(now time.Duration, busy ...ids.Home) []ids.Home {
		r.Report(&load, Alive, Store{}, false)
		return slices.Clone(r.Due(int64(now), 0, others, busy))
	}
	if got := due(0); len(got) != nodes+1 || got[0] != 0 {
		t.Errorf("at first it tells %v", got)
	}
	others = append(others, nodes+1)
	r.Forget(7)
	if got := due(time.Second); !slices.Equal(got, []ids.Home{7, nodes + 1}) {
		t.Errorf("that one has come and one lives again it tells %v", got)
	}
	others = others[:nodes]
	due(time.Second)
	others = append(others, nodes+1)
	if got := due(time.Second); !slices.Equal(got, []ids.Home{nodes + 1}) {
		t.Errorf("that one has gone and come it tells %v", got)
	}
	times := make(map[ids.Home]int)
	for now := 2 * time.Second; now <= 202*time.Second; now += time.Second {
		for _, node := range due(now, 3, 5) {
			times[node]++
		}
	}
	for node, n := range times {
		want := 1
		if node == 0 || node == 3 || node == 5 {
			want = 50
		}
		if n != want && n != want+1 {
			t.Errorf("in 200 s it tells node %v %d times, want about %d", node, n, want)
		}
	}
}
