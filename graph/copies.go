package graph

// replica is one copy of a result.
type replica struct {
	worker int32
	from   int32 // the worker it comes from, until it is there
	next   int32
}

// copies is where results are: who holds which, or is being sent it.
type copies struct {
	*step
	tasks    *tasks
	workers  *workers
	entries  []replica
	spare    int32 // first unused entry
	inMemory int64 // bytes
	peak     int64 // the most that it was
}

func newCopies(s *step, ts *tasks, ws *workers) *copies {
	return &copies{step: s, tasks: ts, workers: ws, spare: none}
}

// addCopy records a copy of a task's result on w: there, or on its way from another worker.
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

// compact takes out of a worker's list what it does not hold any more, and what is in it twice.
func (cs *copies) compact(w *worker) {
	keep := w.holds[:0]
	for _, t := range w.holds {
		if cs.copyAt(t, w.index) != none {
			keep = append(keep, t)
		}
	}
	w.holds = keep
}

// copyAt gives the entry of t's copy on a worker, or none.
func (cs *copies) copyAt(t, worker int32) int32 {
	for i := cs.tasks.list[t].copies; i != none; i = cs.entries[i].next {
		if cs.entries[i].worker == worker {
			return i
		}
	}
	return none
}

// removeCopy takes t's copy on a worker out of the tables.
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
	if w := cs.workers.workersOrGone(from); w != nil {
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

// source is the worker to fetch a copy of t from: one that has it, and of these who sends the fewest.
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

// fetch has t's result copied to w, unless it is there or on its way.
func (cs *copies) fetch(t int32, w *worker) {
	if cs.copyAt(t, w.index) != none {
		return
	}
	from := cs.source(t)
	cs.addCopy(t, w, from.index)
	cs.tellFetch(t, from, w)
}

func (cs *copies) tellFetch(t int32, from, to *worker) {
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

// missing is the bytes of a task's inputs that a worker has not.
func (cs *copies) missing(t int32, w *worker) int64 {
	n := int64(0)
	for _, d := range cs.g.deps.of(t) {
		if cs.copyAt(d, w.index) == none {
			n += cs.tasks.list[d].bytes
		}
	}
	return n
}
