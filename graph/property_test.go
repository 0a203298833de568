package graph

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"mobula/internal/testkit"
)

// drawGraph makes any graph: layers of tasks with inputs from any layer below, groups, marks,
// priorities and annotations.
func drawGraph(t *rapid.T) *Graph {
	n := rapid.IntRange(1, 40).Draw(t, "tasks")
	tasks := make([]Task, n)
	order := rapid.Permutation(slices.Collect(func(yield func(int32) bool) {
		for i := range int32(n) {
			if !yield(i) {
				return
			}
		}
	})).Draw(t, "order")
	for i := range tasks {
		x := &tasks[i]
		x.Key = fmt.Sprintf("t%d", i)
		x.Group = fmt.Sprintf("g%d", rapid.IntRange(0, 3).Draw(t, "group"))
		if i > 0 {
			x.Deps = rapid.SliceOfN(rapid.Int32Range(0, int32(i-1)), 0, 4).Draw(t, "deps")
		}
		x.Producer = rapid.IntRange(0, 5).Draw(t, "producer") == 0
		x.Priority = rapid.Int32Range(-1, 1).Draw(t, "priority")
		if rapid.IntRange(0, 6).Draw(t, "annotated") == 0 {
			x.Ann = &Annotations{Retries: rapid.IntRange(0, 2).Draw(t, "retries")}
			if rapid.Bool().Draw(t, "restricted") {
				x.Ann.Workers = []string{fmt.Sprintf("w%d", rapid.IntRange(0, 2).Draw(t, "only"))}
				x.Ann.AllowOthers = rapid.Bool().Draw(t, "others")
			}
			if rapid.Bool().Draw(t, "resource") {
				x.Ann.Resources = map[string]int64{"gpu": 1}
			}
		}
	}
	wanted := rapid.SliceOfNDistinct(rapid.Int32Range(0, int32(n-1)), 1, min(n, 5), rapid.ID[int32]).Draw(t, "wanted")
	g, err := New(tasks, order, wanted)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func drawConfig(t *rapid.T) Config {
	cfg := DefaultConfig()
	cfg.Policy = rapid.SampledFrom([]Policy{Both, Both, Withhold, CoAssign}).Draw(t, "policy")
	cfg.Saturation = rapid.SampledFrom([]float64{0, 1, 1.1, 2, math.Inf(1)}).Draw(t, "saturation")
	cfg.AllowedFailures = rapid.IntRange(0, 3).Draw(t, "allowed failures")
	cfg.Budget = rapid.SampledFrom([]int64{0, 1, 500}).Draw(t, "budget")
	return cfg
}

// TestProperties drives a core with any graph and any events. After each step validate and the world
// check that nothing runs before its inputs, that nothing is freed that is used, and every total; in the
// end everything wanted is there or has failed with a cause, and nothing else is kept.
func TestProperties(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		w := newWorld(t, drawGraph(t), drawConfig(t))
		w.took = rapid.SampledFrom([]int64{1e6, 5e9}).Draw(t, "took")
		wanted := make(map[int32]bool)
		for _, x := range w.g.Wanted() {
			wanted[x] = true
		}
		for range rapid.IntRange(0, 3).Draw(t, "workers") {
			w.draw(t)
		}
		w.adopt(t)
		w.step(Start{})
		for range rapid.IntRange(0, 80).Draw(t, "steps") {
			w.act(t, wanted)
		}
		for _, id := range w.ids() {
			w.step(Resume{Worker: id})
		}
		for _, name := range []string{"w0", "w1", "w2"} { // so that every annotation can be met
			w.joinAs(WorkerJoined{Name: name, Threads: 1, Resources: map[string]int64{"gpu": 1}})
		}
		w.finish()
		w.check(wanted)
	})
}

// adopt has workers hold some results from before the start.
func (w *world) adopt(t *rapid.T) {
	for _, id := range w.ids() {
		for _, x := range rapid.SliceOfNDistinct(rapid.Int32Range(0, int32(w.g.Len()-1)), 0, 2, rapid.ID[int32]).Draw(t, "held") {
			w.workers[id].store[x] = true
			w.step(Holds{Task: x, Worker: id, Bytes: 50})
		}
	}
}

func (w *world) draw(t *rapid.T) {
	w.joinAs(WorkerJoined{
		Name: fmt.Sprintf("w%d", rapid.IntRange(0, 3).Draw(t, "name")), Threads: rapid.IntRange(1, 3).Draw(t, "threads"),
		Memory:    rapid.SampledFrom([]int64{0, 1000}).Draw(t, "memory"),
		Resources: map[string]int64{"gpu": rapid.Int64Range(0, 1).Draw(t, "gpu")},
	})
}

func (w *world) act(t *rapid.T, wanted map[int32]bool) {
	action := rapid.IntRange(0, 19).Draw(t, "action")
	if len(w.workers) == 0 && action < 15 {
		w.draw(t)
		return
	}
	var id WorkerID
	var ready []int32
	if len(w.workers) > 0 {
		id = rapid.SampledFrom(w.ids()).Draw(t, "worker")
		ready = w.runnable(id)
	}
	pick := func() int32 { return rapid.SampledFrom(ready).Draw(t, "task") }
	switch action {
	case 0, 1, 2, 3, 4:
		if len(ready) > 0 {
			w.done(id, pick(), rapid.Int64Range(0, 300).Draw(t, "bytes"))
		}
	case 5, 6:
		if len(ready) > 0 {
			w.begin(id, pick())
		}
	case 7, 8, 9:
		if c := slices.Sorted(maps.Keys(w.workers[id].coming)); len(c) > 0 {
			w.arrive(id, rapid.SampledFrom(c).Draw(t, "copy"))
		}
	case 10:
		if len(ready) > 0 {
			w.fail(id, pick(), rapid.Bool().Draw(t, "retriable"))
		}
	case 11:
		w.kill(id, rapid.Bool().Draw(t, "killed"))
	case 12:
		w.step(Pause{Worker: id})
	case 13:
		w.step(Resume{Worker: id})
	case 14:
		w.secede(t, id)
	case 15:
		w.step(Tick{})
	case 16:
		if len(w.recalls) > 0 {
			r := w.recalls[0]
			w.recalls = w.recalls[1:]
			w.step(r)
		}
	case 17:
		x := rapid.Int32Range(0, int32(w.g.Len()-1)).Draw(t, "wants")
		off := rapid.Bool().Draw(t, "off")
		if off {
			delete(wanted, x)
			delete(w.failures, x)
		} else if !wanted[x] {
			wanted[x] = true
		}
		w.step(Want{Tasks: []int32{x}, Off: off})
	case 18:
		if rapid.IntRange(0, 3).Draw(t, "cancel") == 0 {
			w.step(Cancel{Tasks: []int32{rapid.Int32Range(0, int32(w.g.Len()-1)).Draw(t, "cancelled")}})
		}
	case 19:
		w.late(t)
	}
}

// secede has the first task of a worker secede or rejoin.
func (w *world) secede(t *rapid.T, id WorkerID) {
	ready := w.runnable(id)
	if len(ready) == 0 {
		return
	}
	x := ready[0]
	n := w.workers[id].tasks[x]
	if rapid.Bool().Draw(t, "rejoin") {
		w.step(Rejoined{Task: x, Attempt: n})
		return
	}
	w.begin(id, x)
	w.step(LongRunning{Task: x, Attempt: n})
}

// late ends an attempt that was stopped, and loses a copy where one is on its way.
func (w *world) late(t *rapid.T) {
	if len(w.stopped) > 0 {
		s := w.stopped[0]
		w.stopped = w.stopped[1:]
		x := w.workers[s.Worker]
		if _, again := x.tasks[s.Task]; !again && !x.store[s.Task] {
			if _, coming := x.coming[s.Task]; !coming {
				x.store[s.Task] = true
				w.step(Done{Task: s.Task, Attempt: s.Attempt, Worker: s.Worker, Bytes: 10})
			}
		}
		return
	}
	for _, id := range w.ids() {
		for _, x := range slices.Sorted(maps.Keys(w.workers[id].coming)) {
			if from := w.workers[id].coming[x]; rapid.Bool().Draw(t, "lost") {
				delete(w.workers[from].store, x)
				w.step(FetchFailed{Task: x, Worker: id, From: from})
				return
			}
		}
	}
}

func (w *world) check(wanted map[int32]bool) {
	for x := range wanted {
		switch w.c.State(x) {
		case Memory:
			if w.results[x] == 0 {
				w.fatalf("the result of %s is there and was not told", w.g.Key(x))
			}
		case Erred, Forgotten:
			if f, ok := w.failures[x]; !ok {
				w.fatalf("%s failed and it was not told: %v", w.g.Key(x), w.c.Err(x))
			} else if w.c.State(x) == Erred && w.c.Err(x) != f.Err {
				w.fatalf("%s failed with %v, told %v", w.g.Key(x), w.c.Err(x), f.Err)
			}
		default:
			w.fatalf("%s is %v in the end", w.g.Key(x), w.c.State(x))
		}
	}
	if w.finished == 0 {
		w.fatalf("the end was not told")
	}
	for _, id := range w.ids() {
		for t := range w.workers[id].store {
			if !wanted[t] {
				w.fatalf("%s is kept on %d for nothing", w.g.Key(t), id)
			}
		}
		if n := len(w.workers[id].tasks); n > 0 {
			w.fatalf("%d tasks are left on %d", n, id)
		}
	}
	for i := range w.g.Len() {
		if s := w.c.State(int32(i)); s.active() {
			w.fatalf("%s is %v in the end", w.g.Key(int32(i)), s)
		}
	}
}
