package graph

import "slices"

// place gives a ready task a worker, or keeps it until there is one for it.
func (c *Core) place(t int32) {
	if len(c.live) > 0 && c.isRoot(t) && c.roots.takes(t) {
		c.to(t, onHold)
		c.roots.push(c, t)
		return
	}
	if w := c.choose(t); w != nil {
		c.assign(t, w)
	} else {
		c.strand(t)
	}
}

// isRoot tells whether a ready task is to be treated as a root: what it makes comes from outside the
// graph, or it is one of a large group that depends on next to nothing. This is Dask's is_rootish.
// With Both, everything without inputs is one: related tasks are kept together however few they are.
func (c *Core) isRoot(t int32) bool {
	x := &c.g.tasks[t]
	if x.Ann.restricts() {
		return false
	}
	if x.Producer || c.cfg.Policy == Both && len(c.g.deps.of(t)) == 0 {
		return true
	}
	g := &c.g.groups[c.g.group[t]]
	return int(g.size) > 2*c.threads && g.deps < bigDeps && g.depTasks < bigDeps
}

// choose picks a worker for a task that is no root, or nil.
func (c *Core) choose(t int32) *worker {
	if c.g.tasks[t].Ann.restricts() {
		return c.best(t, c.valid(t))
	}
	deps := c.g.deps.of(t)
	if len(deps) == 0 {
		return c.leastBusy()
	}
	var have [8]*worker
	ws := have[:0]
	for _, d := range deps {
		for i := c.tasks[d].copies; i != none; i = c.copies[i].next {
			if w := c.workers[c.copies[i].worker]; !w.paused && !slices.Contains(ws, w) {
				ws = append(ws, w)
			}
		}
	}
	if len(ws) == 1 {
		return ws[0]
	}
	if len(ws) == 0 {
		ws = c.running()
	}
	return c.best(t, ws)
}

func (c *Core) running() []*worker {
	out := make([]*worker, 0, len(c.live))
	for _, w := range c.live {
		if !w.paused {
			out = append(out, w)
		}
	}
	return out
}

// leastBusy is for tasks without inputs: the least work, and round where several have none.
func (c *Core) leastBusy() *worker {
	var best *worker
	c.turn++
	for i := range c.live {
		w := c.live[(i+c.turn)%len(c.live)]
		if !w.paused && (best == nil || w.work < best.work) {
			best = w
		}
	}
	return best
}

// valid gives the running workers that a task with restrictions may go to.
func (c *Core) valid(t int32) []*worker {
	a := c.g.tasks[t].Ann
	var named, others []*worker
	for _, w := range c.live {
		if !w.has(a.Resources) {
			continue
		}
		if len(a.Workers) == 0 || slices.Contains(a.Workers, w.name) {
			named = append(named, w)
		} else {
			others = append(others, w)
		}
	}
	if len(named) == 0 && a.AllowOthers {
		named = others
	}
	return slices.DeleteFunc(named, func(w *worker) bool { return w.paused })
}

func (w *worker) has(res map[string]int64) bool {
	for name, n := range res {
		if w.res[name] < n {
			return false
		}
	}
	return true
}

// best picks of ws where a task goes. Dask's objective is the earliest start, moves and work before
// it added up; with Both it is the fewest bytes to move, then the least work.
func (c *Core) best(t int32, ws []*worker) *worker {
	var best *worker
	var low [3]float64
	for _, w := range ws {
		missing := float64(c.missing(t, w))
		load := float64(w.work) / float64(w.threads)
		cost := [3]float64{load/1e9 + missing/c.cfg.Bandwidth, float64(w.bytes), 0}
		if c.cfg.Policy == Both {
			cost = [3]float64{missing, load, float64(w.bytes)}
		}
		if best == nil || slices.Compare(cost[:], low[:]) < 0 {
			best, low = w, cost
		}
	}
	return best
}

// missing is the bytes of a task's inputs that a worker has not.
func (c *Core) missing(t int32, w *worker) int64 {
	n := int64(0)
	for _, d := range c.g.deps.of(t) {
		if c.copyAt(d, w.index) == none {
			n += c.tasks[d].bytes
		}
	}
	return n
}

// assign sends a task, and what it lacks, to a worker.
func (c *Core) assign(t int32, w *worker) {
	c.to(t, onAssign)
	x := &c.tasks[t]
	x.attempt++
	x.worker, x.at = w.index, int32(len(w.procs))
	x.est = c.duration(t)
	w.procs = append(w.procs, t)
	w.work += x.est
	for _, d := range c.g.deps.of(t) {
		c.fetch(d, w)
	}
	c.emit(Run{Task: t, Attempt: x.attempt, Worker: w.id, Rank: c.g.rank[t]})
}

// leastFull is the open worker with the fewest tasks a thread of those that admits lets pass, or nil. Those that do not pass are not
// open any more.
func (c *Core) leastFull(admits func(*worker) bool) *worker {
	var best *worker
	keep := c.open[:0]
	for _, w := range c.open {
		if c.slots(w) <= 0 || admits != nil && !admits(w) {
			w.isOpen = false
			continue
		}
		keep = append(keep, w)
		if best == nil || len(w.procs)*best.threads < len(best.procs)*w.threads {
			best = w
		}
	}
	clear(c.open[len(keep):])
	c.open = keep
	return best
}
