package graph

import (
	"errors"
	"reflect"
	"slices"
	"testing"

	"mobula/internal/lint/parts"
)

// Parts refer only to the parts below them; placement calls the one above through an interface of its own.
func TestPartsKnowOnlyThoseBelow(t *testing.T) { parts.InOrder(t, reflect.TypeFor[Core](), 8) }

// fakeQueue stands for the queue of root tasks, above placement.
type fakeQueue struct{ pushed []int32 }

func (q *fakeQueue) takes(int32) bool   { return true }
func (q *fakeQueue) push(t int32)       { q.pushed = append(q.pushed, t) }
func (q *fakeQueue) settle()            {}
func (q *fakeQueue) workerLeft(*worker) {}

// alone makes only placement and the parts below it.
func alone(t *testing.T, b *builder) (*placement, *fakeQueue) {
	t.Helper()
	s := &step{g: b.graph(t), cfg: DefaultConfig(), started: true}
	ts := newTasks(s)
	ws := newWorkers(s, ts)
	q := &fakeQueue{}
	return &placement{step: s, tasks: ts, measures: newMeasures(s, ts), workers: ws, copies: newCopies(s, ts, ws), queue: q}, q
}

// adopt puts a task's result on a worker.
func (ps *placement) adopt(t int32, bytes int64, w *worker) {
	ps.tasks.to(t, onAdopt)
	ps.tasks.list[t].bytes = bytes
	ps.copies.addCopy(t, w, none)
}

// makeReady makes a task wait with all its inputs there.
func (ps *placement) makeReady(t int32) {
	ps.tasks.to(t, onNeed)
	ps.markReady(t)
}

func TestPlacementLeavesRootsToTheQueue(t *testing.T) {
	b := &builder{}
	b.add("a")
	b.add("b", "a")
	ps, q := alone(t, b)
	ps.makeReady(0)
	ps.placeReady()
	if ps.tasks.list[0].state != NoWorker || len(q.pushed) != 0 {
		t.Fatalf("with no worker the root is %v, and the queue has %v", ps.tasks.list[0].state, q.pushed)
	}
	ps.workers.join(WorkerJoined{Worker: 7, Threads: 1})
	ps.unstrand()
	ps.placeReady()
	if ps.tasks.list[0].state != Queued || !slices.Equal(q.pushed, []int32{0}) || len(ps.stranded) != 0 {
		t.Errorf("the root is %v, the queue has %v, and %v are stranded", ps.tasks.list[0].state, q.pushed, ps.stranded)
	}
	if len(ps.out) != 0 {
		t.Errorf("%v was asked for before the queue assigned it", ps.out)
	}
}

// A task that is not a root runs where most of its inputs are, after the rest was fetched there.
func TestPlacementFetchesWhatATaskLacks(t *testing.T) {
	b := &builder{}
	b.add("small")
	b.add("large")
	b.add("sum", "small", "large")
	ps, _ := alone(t, b)
	for id := range WorkerID(2) {
		ps.workers.join(WorkerJoined{Worker: id, Threads: 1})
	}
	ps.adopt(0, 10, ps.workers.worker(0))
	ps.adopt(1, 1000, ps.workers.worker(1))
	ps.makeReady(2)
	ps.placeReady()
	want := []Effect{Fetch{Task: 0, From: 0, To: 1, Bytes: 10}, Run{Task: 2, Attempt: 1, Worker: 1, Rank: 2}}
	if !slices.Equal(ps.out, want) {
		t.Errorf("asked for %v, want %v", ps.out, want)
	}
	if w := ps.workers.worker(1); w.bytes != 1010 || len(w.procs) != 1 || ps.copies.inMemory != 1020 {
		t.Errorf("the worker has %d bytes and %v to do; %d bytes are there in all", w.bytes, w.procs, ps.copies.inMemory)
	}
}

func TestCopiesComeFromWhoSendsTheFewest(t *testing.T) {
	b := &builder{}
	b.add("a")
	ps, _ := alone(t, b)
	for id := range WorkerID(4) {
		ps.workers.join(WorkerJoined{Worker: id, Threads: 1})
	}
	cs := ps.copies
	ps.adopt(0, 5, ps.workers.worker(0))
	cs.addCopy(0, ps.workers.worker(1), none)
	cs.fetch(0, ps.workers.worker(2))
	cs.fetch(0, ps.workers.worker(2)) // it is on its way already
	cs.fetch(0, ps.workers.worker(3))
	want := []Effect{Fetch{Task: 0, From: 0, To: 2, Bytes: 5}, Fetch{Task: 0, From: 1, To: 3, Bytes: 5}}
	if !slices.Equal(ps.out, want) {
		t.Fatalf("asked for %v, want %v", ps.out, want)
	}
	ps.out = nil
	cs.free(0)
	if cs.inMemory != 0 || cs.peak != 20 || ps.workers.worker(0).sending != 0 {
		t.Errorf("after the result is freed: %d bytes, the most %d, %d sent", cs.inMemory, cs.peak, ps.workers.worker(0).sending)
	}
	if f, ok := ps.out[0].(Free); !ok || len(f.Workers) != 4 {
		t.Errorf("asked for %v, want all four copies freed", ps.out)
	}
}

// needsAlone adds needs, and nothing above it.
func needsAlone(t *testing.T, b *builder) (*needs, *fakeQueue) {
	t.Helper()
	ps, q := alone(t, b)
	ps.workers.join(WorkerJoined{Worker: 7, Threads: 1})
	return newNeeds(ps.step, ps.tasks, ps.workers, ps.copies, ps), q
}

func TestNeedsReachDownAndEndWithTheWant(t *testing.T) {
	b := &builder{}
	b.add("a")
	b.add("b", "a")
	b.add("c", "b")
	b.add("d", "a")
	ns, q := needsAlone(t, b)
	states := func() []State {
		var out []State
		for i := range ns.tasks.list {
			out = append(out, ns.tasks.list[i].state)
		}
		return out
	}
	ns.want([]int32{2})
	ns.placement.placeReady()
	if got := states(); !slices.Equal(got, []State{Queued, Waiting, Waiting, Released}) || ns.left != 1 || !slices.Equal(q.pushed, []int32{0}) {
		t.Fatalf("with c wanted: %v, %d left, %v withheld", got, ns.left, q.pushed)
	}
	ns.unwant(2)
	if got := states(); !slices.Equal(got, []State{Released, Forgotten, Forgotten, Released}) || ns.left != 0 {
		t.Errorf("with nothing wanted: %v, %d left", got, ns.left)
	}
}

func TestNeedsFailWhatTakesTheFailed(t *testing.T) {
	b := &builder{}
	b.add("a")
	b.add("b", "a")
	b.add("c", "b")
	ns, _ := needsAlone(t, b)
	ns.want([]int32{2})
	why := errors.New("why")
	ns.failFor(0, why)
	if len(ns.out) != 1 || ns.left != 0 {
		t.Fatalf("told %v, %d left", ns.out, ns.left)
	}
	if f, ok := ns.out[0].(Failed); !ok || f.Err != why || !slices.Equal(f.Chain, []int32{2, 1, 0}) {
		t.Errorf("told %v, want the chain from c to a", ns.out[0])
	}
}

// A lost result is made again for its waiters, and is not counted twice.
func TestNeedsMakeTheLostAgain(t *testing.T) {
	b := &builder{}
	b.add("a")
	b.add("b")
	b.add("c", "a", "b")
	ns, q := needsAlone(t, b)
	w := ns.workers.worker(7)
	ns.placement.adopt(0, 5, w)
	ns.want([]int32{2})
	ns.placement.placeReady()
	ns.loseCopies(w)
	ns.placement.placeReady()
	if a, c := ns.tasks.list[0], ns.tasks.list[2]; a.state != Queued || c.waits != 2 || !slices.Equal(q.pushed, []int32{1, 0}) {
		t.Errorf("a is %v, c waits for %d, the queue has %v", a.state, c.waits, q.pushed)
	}
	if ns.counters.Lost != 1 || w.bytes != 0 || ns.copies.inMemory != 0 {
		t.Errorf("%d lost, %d bytes on the worker, %d in all", ns.counters.Lost, w.bytes, ns.copies.inMemory)
	}
}
