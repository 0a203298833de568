package graph

// replica is one copy of a result.
type replica struct {
	worker int32
	from   int32 // the worker it comes from, until it has arrived
	next   int32
}

// copies is the table of where results are: which workers hold which, or are being sent it.
type copies struct {
	*step
	tasks    *tasks
	workers  *workers
	entries  []replica
	spare    int32 // first unused entry
	inMemory int64 // bytes
	peak     int64 // the highest inMemory
}

func newCopies(s *step, ts *tasks, ws *workers) *copies {
	return &copies{step: s, tasks: ts, workers: ws, spare: none}
}

// addCopy records a copy of a task's result on w, present or on its way from another worker.
func (cs *copies) addCopy(t int32, w *worker, from int32) {
	x := &cs.tasks.list[t]
	i := cs.spare
	if i == none {
		i = int32(len(cs.entries))
		cs.entries = append(cs.entries, replica{})
	} else {
		cs.spare = cs.entries[i].next
	}
	cs.entries[i] = replica{worker: w.index, from: from, next: x.copies}
	x.copies = i
	w.bytes += x.bytes
	cs.inMemory += x.bytes
	cs.peak = max(cs.peak, cs.inMemory)
	w.nholds++
	w.holds = append(w.holds, t)
	if len(w.holds) > 32 && len(w.holds) > 2*w.nholds {
		cs.compact(w)
	}
}

// compact removes from a worker's list what the worker no longer holds, and duplicates.
func (cs *copies) compact(w *worker) {
	keep := w.holds[:0]
	for _, t := range w.holds {
		if cs.copyAt(t, w.index) != none {
			keep = append(keep, t)
		}
	}
	w.holds = keep
}

// copyAt gives the index of the entry of t's copy on a worker, or none.
func (cs *copies) copyAt(t, worker int32) int32 {
	for i := cs.tasks.list[t].copies; i != none; i = cs.entries[i].next {
		if cs.entries[i].worker == worker {
			return i
		}
	}
	return none
}

// removeCopy removes t's copy on a worker from the tables.
func (cs *copies) removeCopy(t, worker int32) {
	x := &cs.tasks.list[t]
	for p := &x.copies; *p != none; p = &cs.entries[*p].next {
		i := *p
		if cs.entries[i].worker != worker {
			continue
		}
		*p = cs.entries[i].next
		cs.dropEntry(t, i)
		return
	}
}

func (cs *copies) dropEntry(t, i int32) {
	e := &cs.entries[i]
	if w := cs.workers.byIndex[e.worker]; w != nil {
		w.bytes -= cs.tasks.list[t].bytes
		w.nholds--
	}
	cs.arrivedFrom(e.from)
	cs.inMemory -= cs.tasks.list[t].bytes
	*e = replica{next: cs.spare}
	cs.spare = i
}

func (cs *copies) arrivedFrom(from int32) {
	if w := cs.workers.at(from); w != nil {
		w.sending--
	}
}

// free drops every copy of a result.
func (cs *copies) free(t int32) {
	x := &cs.tasks.list[t]
	if x.copies == none {
		return
	}
	var where []WorkerID
	for i := x.copies; i != none; {
		next := cs.entries[i].next
		if w := cs.workers.byIndex[cs.entries[i].worker]; w != nil {
			where = append(where, w.id)
		}
		cs.dropEntry(t, i)
		i = next
	}
	x.copies = none
	cs.emit(Free{Task: t, Workers: where})
}

// source is the worker to fetch a copy of t from: of those that have it, the one that sends the fewest copies.
func (cs *copies) source(t int32) *worker {
	var best *worker
	for i := cs.tasks.list[t].copies; i != none; i = cs.entries[i].next {
		if cs.entries[i].from != none {
			continue
		}
		if w := cs.workers.byIndex[cs.entries[i].worker]; best == nil || w.sending < best.sending || w.sending == best.sending && w.index < best.index {
			best = w
		}
	}
	return best
}

func (cs *copies) holder(t int32) WorkerID { return cs.source(t).id }

// fetch copies t's result to w, unless it is there or on its way.
func (cs *copies) fetch(t int32, w *worker) {
	if cs.copyAt(t, w.index) != none {
		return
	}
	from := cs.source(t)
	cs.addCopy(t, w, from.index)
	cs.emitFetch(t, from, w)
}

func (cs *copies) emitFetch(t int32, from, to *worker) {
	from.sending++
	b := cs.tasks.list[t].bytes
	cs.counters.Fetches++
	cs.counters.BytesMoved += b
	cs.emit(Fetch{Task: t, From: from.id, To: to.id, Bytes: b})
}

func (cs *copies) onFetched(ev Fetched) {
	w := cs.workers.worker(ev.Worker)
	if w == nil {
		return
	}
	i := cs.copyAt(ev.Task, w.index)
	if i == none {
		return // freed since; the Free is on its way to the worker
	}
	cs.arrivedFrom(cs.entries[i].from)
	cs.entries[i].from = none
}

// missing is how many bytes of a task's inputs a worker lacks.
func (cs *copies) missing(t int32, w *worker) int64 {
	n := int64(0)
	for _, d := range cs.g.deps.of(t) {
		if cs.copyAt(d, w.index) == none {
			n += cs.tasks.list[d].bytes
		}
	}
	return n
}
