package graph

// addCopy records a copy of a task's result on w: there, or on its way from another worker.
func (c *Core) addCopy(t int32, w *worker, from int32) {
	x := &c.tasks[t]
	i := c.spare
	if i == none {
		i = int32(len(c.copies))
		c.copies = append(c.copies, replica{})
	} else {
		c.spare = c.copies[i].next
	}
	c.copies[i] = replica{worker: w.index, from: from, next: x.copies}
	x.copies = i
	w.bytes += x.bytes
	c.inMemory += x.bytes
	c.peak = max(c.peak, c.inMemory)
	w.nholds++
	w.holds = append(w.holds, t)
	if len(w.holds) > 32 && len(w.holds) > 2*w.nholds {
		c.compact(w)
	}
}

// compact takes out of a worker's list what it does not hold any more, and what is in it twice.
func (c *Core) compact(w *worker) {
	keep := w.holds[:0]
	for _, t := range w.holds {
		if c.copyAt(t, w.index) != none {
			keep = append(keep, t)
		}
	}
	w.holds = keep
}

// copyAt gives the entry of t's copy on a worker, or none.
func (c *Core) copyAt(t, worker int32) int32 {
	for i := c.tasks[t].copies; i != none; i = c.copies[i].next {
		if c.copies[i].worker == worker {
			return i
		}
	}
	return none
}

// removeCopy takes t's copy on a worker out of the tables.
func (c *Core) removeCopy(t, worker int32) {
	x := &c.tasks[t]
	for p := &x.copies; *p != none; p = &c.copies[*p].next {
		i := *p
		if c.copies[i].worker != worker {
			continue
		}
		*p = c.copies[i].next
		c.dropEntry(t, i)
		return
	}
}

func (c *Core) dropEntry(t, i int32) {
	e := &c.copies[i]
	if w := c.workers[e.worker]; w != nil {
		w.bytes -= c.tasks[t].bytes
		w.nholds--
	}
	c.arrivedFrom(e.from)
	c.inMemory -= c.tasks[t].bytes
	*e = replica{next: c.spare}
	c.spare = i
}

func (c *Core) arrivedFrom(from int32) {
	if w := c.workersOrGone(from); w != nil {
		w.sending--
	}
}

// free drops every copy of a result.
func (c *Core) free(t int32) {
	x := &c.tasks[t]
	if x.copies == none {
		return
	}
	var where []WorkerID
	for i := x.copies; i != none; {
		next := c.copies[i].next
		if w := c.workers[c.copies[i].worker]; w != nil {
			where = append(where, w.id)
		}
		c.dropEntry(t, i)
		i = next
	}
	x.copies = none
	c.emit(Free{Task: t, Workers: where})
}

// source is the worker to fetch a copy of t from: one that has it, and of these who sends the fewest.
func (c *Core) source(t int32) *worker {
	var best *worker
	for i := c.tasks[t].copies; i != none; i = c.copies[i].next {
		if c.copies[i].from != none {
			continue
		}
		if w := c.workers[c.copies[i].worker]; best == nil || w.sending < best.sending || w.sending == best.sending && w.index < best.index {
			best = w
		}
	}
	return best
}

func (c *Core) holder(t int32) WorkerID { return c.source(t).id }

// fetch has t's result copied to w, unless it is there or on its way.
func (c *Core) fetch(t int32, w *worker) {
	if c.copyAt(t, w.index) != none {
		return
	}
	from := c.source(t)
	c.addCopy(t, w, from.index)
	c.tellFetch(t, from, w)
}

func (c *Core) tellFetch(t int32, from, to *worker) {
	from.sending++
	b := c.tasks[t].bytes
	c.counters.Fetches++
	c.counters.BytesMoved += b
	c.emit(Fetch{Task: t, From: from.id, To: to.id, Bytes: b})
}

func (c *Core) onFetched(ev Fetched) {
	w := c.worker(ev.Worker)
	if w == nil {
		return
	}
	i := c.copyAt(ev.Task, w.index)
	if i == none {
		return // freed since; the Free is on its way to the worker
	}
	c.arrivedFrom(c.copies[i].from)
	c.copies[i].from = none
}

func (c *Core) onFetchFailed(ev FetchFailed) {
	w, from := c.worker(ev.Worker), c.worker(ev.From)
	if w == nil || from == nil || c.tasks[ev.Task].state != Memory {
		return
	}
	if i := c.copyAt(ev.Task, w.index); i == none || c.copies[i].from != from.index {
		return
	}
	if i := c.copyAt(ev.Task, from.index); i != none && c.copies[i].from == none {
		for _, u := range c.g.up.of(ev.Task) {
			if y := &c.tasks[u]; y.state == Processing && y.worker == from.index {
				c.withdraw(u)
				c.again(u)
			}
		}
		c.removeCopy(ev.Task, from.index)
		c.emit(Free{Task: ev.Task, Workers: []WorkerID{from.id}})
	}
	c.resource(ev.Task, from.index)
}

// resource finds another source for the copies of t that were to come from a worker.
func (c *Core) resource(t, gone int32) {
	from := c.source(t)
	if from == nil {
		c.lose(t)
		return
	}
	for i := c.tasks[t].copies; i != none; i = c.copies[i].next {
		if c.copies[i].from == gone {
			c.arrivedFrom(gone)
			c.copies[i].from = from.index
			c.tellFetch(t, from, c.workers[c.copies[i].worker])
		}
	}
}

// loseCopies takes away what a worker held that has left.
func (c *Core) loseCopies(w *worker) {
	for _, t := range w.holds {
		if c.copyAt(t, w.index) == none {
			continue
		}
		c.removeCopy(t, w.index)
		c.resource(t, w.index)
	}
}
