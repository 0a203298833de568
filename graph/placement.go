package graph

import (
	"cmp"
	"slices"
)

// placement gives ready tasks their workers. It passes root tasks that are withheld to the queue.
type placement struct {
	*step
	tasks    *tasks
	measures *measures
	workers  *workers
	copies   *copies
	queue    rootQueue
	ready    []int32 // waiting tasks with all inputs in memory, to be placed at the end of the step
	stranded []int32 // ready tasks that no worker may run
}

// rootQueue holds withheld root tasks; each policy has its own kind. It is above placement, which assigns tasks for it.
type rootQueue interface {
	// takes tells whether to withhold a root task.
	takes(t int32) bool
	// push takes a root task that has become ready.
	push(t int32)
	// settle assigns what may run now.
	settle()
	// workerLeft removes a worker that left.
	workerLeft(w *worker)
}

// place gives a ready task a worker, or keeps it until there is one for it.
func (ps *placement) place(t int32) {
	if len(ps.workers.live) > 0 && ps.isRoot(t) && ps.queue.takes(t) {
		ps.tasks.to(t, onHold)
		ps.queue.push(t)
		return
	}
	if w := ps.choose(t); w != nil {
		ps.assign(t, w)
	} else {
		ps.strand(t)
	}
}

// isRoot tells whether a ready task is treated as a root: its data comes from outside the graph, or it is one of a
// large group that depends on next to nothing. This is Dask's is_rootish. With Both, every task without inputs is
// a root: related tasks are kept together however few they are.
func (ps *placement) isRoot(t int32) bool {
	x := &ps.g.tasks[t]
	if x.Ann.restricts() {
		return false
	}
	if x.Producer || ps.cfg.Policy == Both && len(ps.g.deps.of(t)) == 0 {
		return true
	}
	g := &ps.g.groups[ps.g.group[t]]
	return int(g.size) > 2*ps.workers.threads && g.deps < bigDeps && g.depTasks < bigDeps
}

// choose picks a worker for a task that is not a root, or nil.
func (ps *placement) choose(t int32) *worker {
	if ps.g.tasks[t].Ann.restricts() {
		return ps.best(t, ps.workers.valid(t))
	}
	deps := ps.g.deps.of(t)
	if len(deps) == 0 {
		return ps.workers.leastBusy()
	}
	var have [8]*worker
	ws := have[:0]
	for _, d := range deps {
		for i := ps.tasks.list[d].copies; i != none; i = ps.copies.entries[i].next {
			if w := ps.workers.byIndex[ps.copies.entries[i].worker]; !w.paused && !slices.Contains(ws, w) {
				ws = append(ws, w)
			}
		}
	}
	if len(ws) == 1 {
		return ws[0]
	}
	if len(ws) == 0 {
		ws = ps.workers.running()
	}
	return ps.best(t, ws)
}

// best picks a worker of ws for a task. Dask's objective is the earliest start: time to move inputs plus work
// before it. With Both it is the fewest bytes to move, then the least work.
func (ps *placement) best(t int32, ws []*worker) *worker {
	var best *worker
	var low [3]float64
	for _, w := range ws {
		missing := float64(ps.copies.missing(t, w))
		load := float64(w.work) / float64(w.threads)
		cost := [3]float64{load/1e9 + missing/ps.cfg.Bandwidth, float64(w.bytes), 0}
		if ps.cfg.Policy == Both {
			cost = [3]float64{missing, load, float64(w.bytes)}
		}
		if best == nil || slices.Compare(cost[:], low[:]) < 0 {
			best, low = w, cost
		}
	}
	return best
}

// assign sends a task, and the inputs that the worker lacks, to a worker.
func (ps *placement) assign(t int32, w *worker) {
	ps.tasks.to(t, onAssign)
	x := &ps.tasks.list[t]
	x.attempt++
	x.worker, x.at = w.index, int32(len(w.procs))
	x.est = ps.measures.duration(t)
	w.procs = append(w.procs, t)
	w.work += x.est
	for _, d := range ps.g.deps.of(t) {
		ps.copies.fetch(d, w)
	}
	ps.emit(Run{Task: t, Attempt: x.attempt, Worker: w.id, Rank: ps.g.rank[t]})
}

// markReady notes a task whose last input has arrived.
func (ps *placement) markReady(t int32) {
	if x := &ps.tasks.list[t]; x.flags&isReady == 0 {
		x.flags |= isReady
		ps.ready = append(ps.ready, t)
	}
}

// placeReady places the tasks that became ready in this step, in order.
func (ps *placement) placeReady() {
	if !ps.started || len(ps.ready) == 0 {
		return
	}
	if len(ps.ready) > 1 {
		slices.SortFunc(ps.ready, func(a, b int32) int { return cmp.Compare(ps.g.rank[a], ps.g.rank[b]) })
	}
	for i := 0; i < len(ps.ready); i++ {
		t := ps.ready[i]
		x := &ps.tasks.list[t]
		x.flags &^= isReady
		if x.state == Waiting && x.waits == 0 {
			ps.place(t)
		}
	}
	ps.ready = ps.ready[:0]
}

// placeAgain places a task anew that has left its worker, or had none. Its inputs are still there.
func (ps *placement) placeAgain(t int32) {
	ps.tasks.to(t, onRecheck)
	ps.tasks.list[t].waits = 0
	ps.markReady(t)
}

// strand keeps a task for which there is no worker.
func (ps *placement) strand(t int32) {
	ps.tasks.to(t, onStrand)
	ps.tasks.list[t].at = int32(len(ps.stranded))
	ps.stranded = append(ps.stranded, t)
}

func (ps *placement) leaveStranded(t int32) {
	last := ps.stranded[len(ps.stranded)-1]
	ps.stranded[ps.tasks.list[t].at] = last
	ps.tasks.list[last].at = ps.tasks.list[t].at
	ps.stranded = ps.stranded[:len(ps.stranded)-1]
}

// unstrand places the tasks anew that no worker could run.
func (ps *placement) unstrand() {
	for _, t := range ps.stranded {
		ps.placeAgain(t)
	}
	ps.stranded = ps.stranded[:0]
}
