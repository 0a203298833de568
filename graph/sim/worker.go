package sim

import (
	"fmt"
	"slices"

	"mobula/graph"
)

// vworker is a virtual worker.
type vworker struct {
	r       *run
	id      graph.WorkerID
	dead    bool
	free    int // threads
	bytes   int64
	store   map[int32]int64 // results it has
	coming  map[int32]copying
	tasks   map[int32]*vtask
	waiters map[int32][]int32 // by input that is not there
	ready   readyHeap
	in, out int64 // when its links are free
}

// copying is a copy on its way to a worker.
type copying struct {
	fetch int64 // numbers it; 0: its source died, and the core is to name another
	flows bool  // its bytes have begun to arrive
}

// vtask is a task that a worker was sent.
type vtask struct {
	attempt int32
	rank    int32
	missing int
	running bool
}

func (w *vworker) handle(ev event) {
	switch ev.kind {
	case evRun:
		w.run(ev)
	case evFetch:
		w.fetch(ev)
	case evFlow:
		if c := w.coming[ev.task]; c.fetch == ev.fetch {
			w.coming[ev.task] = copying{ev.fetch, true}
			w.hold(w.r.cfg.Size(ev.task))
		}
	case evArrive:
		w.arrive(ev)
	case evEnd:
		w.end(ev)
	case evStop:
		w.stop(ev)
	case evRecall:
		w.recall(ev)
	case evFree:
		w.drop(ev.task)
	}
}

// tell sends the core a message.
func (w *vworker) tell(m graph.Event) {
	w.r.at(w.r.now+int64(w.r.cfg.Latency), event{kind: evCore, worker: int32(w.id), msg: m})
}

func (w *vworker) hold(bytes int64) {
	w.bytes += bytes
	w.r.total += bytes
	w.r.rep.Peak = max(w.r.rep.Peak, w.r.total)
	w.r.rep.PeakWorker = max(w.r.rep.PeakWorker, w.bytes)
}

func (w *vworker) run(ev event) {
	t := &vtask{attempt: ev.n, rank: ev.rank}
	w.tasks[ev.task] = t
	for _, d := range w.r.cfg.Graph.Deps(ev.task) {
		if _, ok := w.store[d]; ok {
			continue
		}
		if _, ok := w.coming[d]; !ok {
			w.r.err = fmt.Errorf("worker %d is sent %q and neither has nor fetches %q", w.id, w.r.cfg.Graph.Key(ev.task), w.r.cfg.Graph.Key(d))
			return
		}
		t.missing++
		w.waiters[d] = append(w.waiters[d], ev.task)
	}
	if t.missing == 0 {
		w.ready.push(t.rank, ev.task)
		w.begin()
	}
}

func (w *vworker) fetch(ev event) {
	w.discard(ev.task)
	from := w.r.workers[ev.n]
	if _, ok := from.store[ev.task]; !ok || from.dead {
		if !from.dead {
			w.r.err = fmt.Errorf("worker %d is to fetch %q from %d, which has it not", w.id, w.r.cfg.Graph.Key(ev.task), ev.n)
		}
		w.coming[ev.task] = copying{}
		return
	}
	size := w.r.cfg.Size(ev.task)
	start := max(w.r.now, from.out, w.in)
	end := start + int64(w.r.cfg.NetLatency) + int64(float64(size)/w.r.cfg.Bandwidth*1e9)
	from.out, w.in = end, end
	w.r.seq++
	w.coming[ev.task] = copying{fetch: w.r.seq}
	flow := event{kind: evFlow, worker: int32(w.id), task: ev.task, fetch: w.r.seq, n: ev.n}
	w.r.at(start, flow)
	flow.kind = evArrive
	w.r.at(end, flow)
}

func (w *vworker) arrive(ev event) {
	if w.coming[ev.task].fetch != ev.fetch {
		return
	}
	if w.r.workers[ev.n].dead {
		w.discard(ev.task)
		w.coming[ev.task] = copying{}
		return
	}
	delete(w.coming, ev.task)
	w.store[ev.task] = w.r.cfg.Size(ev.task)
	w.tell(graph.Fetched{Task: ev.task, Worker: w.id})
	for _, t := range w.waiters[ev.task] {
		if x := w.tasks[t]; x != nil && !x.running && x.missing > 0 {
			if x.missing--; x.missing == 0 {
				w.ready.push(x.rank, t)
			}
		}
	}
	delete(w.waiters, ev.task)
	w.begin()
}

// begin puts ready tasks on free threads.
func (w *vworker) begin() {
	for w.free > 0 && len(w.ready) > 0 {
		e := w.ready.pop()
		x := w.tasks[e.task]
		if x == nil || x.running || x.missing > 0 || x.rank != e.rank {
			continue
		}
		for _, d := range w.r.cfg.Graph.Deps(e.task) {
			if _, ok := w.store[d]; !ok {
				w.r.err = fmt.Errorf("%q begins without %q", w.r.cfg.Graph.Key(e.task), w.r.cfg.Graph.Key(d))
			}
		}
		x.running = true
		w.free--
		d := w.r.duration(e.task)
		w.r.rep.Busy += d
		w.r.at(w.r.now+int64(d), event{kind: evEnd, worker: int32(w.id), task: e.task, n: x.attempt, fetch: int64(d)})
	}
}

func (w *vworker) end(ev event) {
	w.free++
	if x := w.tasks[ev.task]; x != nil && x.attempt == ev.n {
		delete(w.tasks, ev.task)
	}
	if fails := w.r.cfg.Fails; fails != nil {
		if err := fails(ev.task, int(ev.n)); err != nil {
			w.tell(graph.Failure{Task: ev.task, Attempt: ev.n, Worker: w.id, Err: err, Retriable: true})
			w.begin()
			return
		}
	}
	size := w.r.cfg.Size(ev.task)
	if _, ok := w.store[ev.task]; !ok {
		w.store[ev.task] = size
		w.hold(size)
	}
	w.tell(graph.Done{Task: ev.task, Attempt: ev.n, Worker: w.id, Bytes: size, Duration: ev.fetch})
	w.begin()
}

func (w *vworker) stop(ev event) {
	if x := w.tasks[ev.task]; x != nil && x.attempt == ev.n && !x.running {
		w.take(ev.task)
	}
}

func (w *vworker) recall(ev event) {
	x := w.tasks[ev.task]
	ok := x != nil && x.attempt == ev.n && !x.running
	if ok {
		w.take(ev.task)
	}
	w.tell(graph.Recalled{Task: ev.task, Attempt: ev.n, Worker: w.id, OK: ok})
}

// take forgets a task that has not begun.
func (w *vworker) take(t int32) {
	delete(w.tasks, t)
	for d, ts := range w.waiters {
		if i := slices.Index(ts, t); i >= 0 {
			w.waiters[d] = slices.Delete(ts, i, i+1)
		}
	}
}

func (w *vworker) drop(t int32) {
	if size, ok := w.store[t]; ok {
		delete(w.store, t)
		w.hold(-size)
		return
	}
	w.discard(t)
}

// discard gives up a copy on its way.
func (w *vworker) discard(t int32) {
	if w.coming[t].flows {
		w.hold(-w.r.cfg.Size(t))
	}
	delete(w.coming, t)
}

// die empties a worker and gives the tasks it was running.
func (w *vworker) die() []int32 {
	running := []int32{}
	for t, x := range w.tasks {
		if x.running {
			running = append(running, t)
		}
	}
	slices.Sort(running)
	w.dead = true
	w.hold(-w.bytes)
	return running
}
