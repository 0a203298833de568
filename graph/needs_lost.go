package graph

// lose handles a result of which no copy is left: its dependents wait again, and if it is needed it is made again,
// with the inputs that this needs.
func (ns *needs) lose(t int32) {
	x := &ns.tasks.list[t]
	ns.counters.Lost++
	for _, u := range ns.g.up.of(t) {
		y := &ns.tasks.list[u]
		switch y.state {
		case Waiting:
			y.waits++
		case NoWorker, Queued, Processing:
			ns.withdraw(u)
			ns.tasks.to(u, onRecheck)
			y.waits = 1
		}
	}
	ns.copies.free(t) // copies that were on their way
	ns.tasks.to(t, onDrop)
	if x.flags&isWanted != 0 {
		ns.left++
		ns.finishedSent = false
	}
	if x.users > 0 || x.flags&isWanted != 0 {
		ns.need(t)
	}
}

func (ns *needs) onFetchFailed(ev FetchFailed) {
	w, from := ns.workers.worker(ev.Worker), ns.workers.worker(ev.From)
	if w == nil || from == nil || ns.tasks.list[ev.Task].state != Memory {
		return
	}
	if i := ns.copies.copyAt(ev.Task, w.index); i == none || ns.copies.entries[i].from != from.index {
		return
	}
	if i := ns.copies.copyAt(ev.Task, from.index); i != none && ns.copies.entries[i].from == none {
		for _, u := range ns.g.up.of(ev.Task) {
			if y := &ns.tasks.list[u]; y.state == Processing && y.worker == from.index {
				ns.withdraw(u)
				ns.placement.placeAgain(u)
			}
		}
		ns.copies.removeCopy(ev.Task, from.index)
		ns.emit(Free{Task: ev.Task, Workers: []WorkerID{from.id}})
	}
	ns.refetch(ev.Task, from.index)
}

// refetch finds another source for the copies of t that were to come from a worker that is gone.
func (ns *needs) refetch(t, gone int32) {
	from := ns.copies.source(t)
	if from == nil {
		ns.lose(t)
		return
	}
	for i := ns.tasks.list[t].copies; i != none; i = ns.copies.entries[i].next {
		if ns.copies.entries[i].from == gone {
			ns.copies.arrivedFrom(gone)
			ns.copies.entries[i].from = from.index
			ns.copies.emitFetch(t, from, ns.workers.byIndex[ns.copies.entries[i].worker])
		}
	}
}

// loseCopies removes the copies of a worker that has left.
func (ns *needs) loseCopies(w *worker) {
	for _, t := range w.holds {
		if ns.copies.copyAt(t, w.index) == none {
			continue
		}
		ns.copies.removeCopy(t, w.index)
		ns.refetch(t, w.index)
	}
}
