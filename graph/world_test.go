package graph

import (
	"errors"
	"fmt"
	"maps"
	"slices"
)

// fataler is what the world needs of a test, rapid's or the standard one.
type fataler interface {
	Helper()
	Fatalf(format string, args ...any)
}

// world is workers made of tables around a core. It checks every effect against what a worker can
// do, and every total of the core after each step.
type world struct {
	t        fataler
	g        *Graph
	c        *Core
	now      int64
	workers  map[WorkerID]*fake
	next     WorkerID
	recalls  []Recalled
	results  map[int32]int // how often each was told
	failures map[int32]Failed
	stopped  []Stop // attempts that may still end
	finished int
	moved    int64
	took     int64 // ns that every task takes
	log      []string
	show     func(Effect) // each effect, before it is carried out
}

type fake struct {
	id     WorkerID
	store  map[int32]bool
	coming map[int32]WorkerID
	tasks  map[int32]int32 // attempts
	begun  map[int32]bool
}

func newWorld(t fataler, g *Graph, cfg Config) *world {
	t.Helper()
	c, err := NewCore(g, cfg)
	if err != nil {
		t.Fatalf("%v", err)
	}
	return &world{t: t, g: g, c: c, workers: make(map[WorkerID]*fake), results: make(map[int32]int), failures: make(map[int32]Failed), took: 1e6}
}

func (w *world) join(threads int) WorkerID {
	return w.joinAs(WorkerJoined{Name: fmt.Sprintf("w%d", w.next), Threads: threads})
}

func (w *world) joinAs(ev WorkerJoined) WorkerID {
	ev.Worker = w.next
	w.next++
	w.workers[ev.Worker] = &fake{
		id: ev.Worker, store: make(map[int32]bool), coming: make(map[int32]WorkerID),
		tasks: make(map[int32]int32), begun: make(map[int32]bool),
	}
	w.step(ev)
	return ev.Worker
}

func (w *world) step(ev Event) {
	w.t.Helper()
	w.now += 1e6
	w.log = append(w.log, fmt.Sprintf("%T%+v", ev, ev))
	for _, e := range w.c.Step(w.now, ev) {
		w.log = append(w.log, fmt.Sprintf("    %T%+v", e, e))
		if w.show != nil {
			w.show(e)
		}
		w.effect(e)
	}
	if err := w.c.validate(); err != nil {
		w.fatalf("after %T%+v: %v", ev, ev, err)
	}
}

func (w *world) fatalf(format string, args ...any) {
	w.t.Helper()
	for _, l := range w.log[max(0, len(w.log)-40):] {
		fmt.Println(l)
	}
	w.t.Fatalf(format, args...)
}

func (w *world) effect(e Effect) {
	w.t.Helper()
	switch e := e.(type) {
	case Run:
		x := w.workers[e.Worker]
		for _, d := range w.g.Deps(e.Task) {
			if _, coming := x.coming[d]; !x.store[d] && !coming {
				w.fatalf("%s is sent to %d without %s", w.g.Key(e.Task), x.id, w.g.Key(d))
			}
		}
		x.tasks[e.Task] = e.Attempt
		delete(x.begun, e.Task)
	case Fetch:
		from, to := w.workers[e.From], w.workers[e.To]
		if from == nil || !from.store[e.Task] || to.store[e.Task] {
			w.fatalf("%s is fetched from %d to %d", w.g.Key(e.Task), e.From, e.To)
		}
		to.coming[e.Task] = e.From
		w.moved += e.Bytes
	case Stop:
		x := w.workers[e.Worker]
		if x.tasks[e.Task] == e.Attempt {
			delete(x.tasks, e.Task)
			if x.begun[e.Task] {
				w.stopped = append(w.stopped, e)
			}
			delete(x.begun, e.Task)
		}
	case Recall:
		x := w.workers[e.Worker]
		ok := x.tasks[e.Task] == e.Attempt && !x.begun[e.Task]
		if ok {
			delete(x.tasks, e.Task)
		}
		w.recalls = append(w.recalls, Recalled{Task: e.Task, Attempt: e.Attempt, Worker: e.Worker, OK: ok})
	case Free:
		for _, id := range e.Workers {
			x := w.workers[id]
			for t := range x.tasks {
				if slices.Contains(w.g.Deps(t), e.Task) {
					w.fatalf("%s is freed on %d, where %s needs it", w.g.Key(e.Task), id, w.g.Key(t))
				}
			}
			delete(x.store, e.Task)
			delete(x.coming, e.Task)
		}
	case Result:
		w.results[e.Task]++
		if !w.workers[e.Worker].store[e.Task] {
			w.fatalf("the result of %s is not where it is said to be", w.g.Key(e.Task))
		}
	case Failed:
		if e.Err == nil || len(e.Chain) == 0 || e.Chain[0] != e.Task {
			w.fatalf("%s failed without a cause: %+v", w.g.Key(e.Task), e)
		}
		for i := 1; i < len(e.Chain); i++ {
			if !slices.Contains(w.g.Deps(e.Chain[i-1]), e.Chain[i]) {
				w.fatalf("the chain %v of %s does not follow dependencies", e.Chain, w.g.Key(e.Task))
			}
		}
		w.failures[e.Task] = e
	case Finished:
		w.finished++
	}
}

// runnable gives the tasks of a worker that have their inputs, by rank, begun or not.
func (w *world) runnable(id WorkerID) []int32 {
	x := w.workers[id]
	var out []int32
	for t := range x.tasks {
		if !slices.ContainsFunc(w.g.Deps(t), func(d int32) bool { return !x.store[d] }) {
			out = append(out, t)
		}
	}
	slices.SortFunc(out, func(a, b int32) int { return int(w.g.Rank(a) - w.g.Rank(b)) })
	return out
}

func (w *world) begin(id WorkerID, t int32) { w.workers[id].begun[t] = true }

func (w *world) done(id WorkerID, t int32, bytes int64) {
	w.t.Helper()
	x := w.workers[id]
	n, ok := x.tasks[t]
	if !ok {
		w.fatalf("%s is not on %d", w.g.Key(t), id)
	}
	delete(x.tasks, t)
	delete(x.begun, t)
	x.store[t] = true
	w.step(Done{Task: t, Attempt: n, Worker: id, Bytes: bytes, Duration: w.took})
}

func (w *world) fail(id WorkerID, t int32, retriable bool) {
	x := w.workers[id]
	n := x.tasks[t]
	delete(x.tasks, t)
	delete(x.begun, t)
	w.step(Failure{Task: t, Attempt: n, Worker: id, Err: errBroken, Retriable: retriable})
}

var errBroken = errors.New("broken")

func (w *world) arrive(id WorkerID, t int32) {
	x := w.workers[id]
	delete(x.coming, t)
	x.store[t] = true
	w.step(Fetched{Task: t, Worker: id})
}

func (w *world) kill(id WorkerID, killed bool) {
	x := w.workers[id]
	running := slices.Sorted(maps.Keys(x.begun))
	if running == nil {
		running = []int32{}
	}
	delete(w.workers, id)
	w.recalls = slices.DeleteFunc(w.recalls, func(r Recalled) bool { return r.Worker == id })
	w.stopped = slices.DeleteFunc(w.stopped, func(s Stop) bool { return s.Worker == id })
	w.step(WorkerLeft{Worker: id, Killed: killed, Running: running})
}

// ids gives the workers in order.
func (w *world) ids() []WorkerID { return slices.Sorted(maps.Keys(w.workers)) }

// settleCopies lets everything arrive that is on its way.
func (w *world) settleCopies() bool {
	some := false
	for _, id := range w.ids() {
		for _, t := range slices.Sorted(maps.Keys(w.workers[id].coming)) {
			if _, still := w.workers[id].coming[t]; still {
				w.arrive(id, t)
				some = true
			}
		}
	}
	return some
}

// where gives the worker that a task was sent to, or -1.
func (w *world) where(t int32) WorkerID {
	for _, id := range w.ids() {
		if _, ok := w.workers[id].tasks[t]; ok {
			return id
		}
	}
	return -1
}

// key gives the index of a key.
func (w *world) key(k string) int32 {
	for i := range w.g.Len() {
		if w.g.Key(int32(i)) == k {
			return int32(i)
		}
	}
	w.fatalf("no key %q", k)
	return -1
}

// finish runs everything to the end, each worker one task at a time.
func (w *world) finish() {
	w.t.Helper()
	for round := 0; ; round++ {
		if round > 20*w.g.Len()+200 {
			w.fatalf("no end: states %v", w.c.count)
		}
		did := w.settleCopies()
		for len(w.recalls) > 0 {
			r := w.recalls[0]
			w.recalls = w.recalls[1:]
			w.step(r)
			did = true
		}
		for _, id := range w.ids() {
			if x := w.workers[id]; x == nil {
				continue
			}
			if ts := w.runnable(id); len(ts) > 0 {
				w.done(id, ts[0], 100)
				did = true
			}
		}
		if !did {
			return
		}
	}
}
