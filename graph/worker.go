package graph

import (
	"math"
	"slices"
)

// worker is what the core knows of a worker.
type worker struct {
	id      WorkerID
	index   int32
	name    string
	threads int
	memory  int64
	res     map[string]int64
	procs   []int32 // tasks it processes
	long    int     // of these, seceded
	work    int64   // what these will take, ns of one thread
	bytes   int64   // of results it holds or is being sent
	holds   []int32 // tasks of which it may have a copy; some are gone
	nholds  int     // how many it has
	sending int     // copies that others fetch from it
	paused  bool
	isOpen  bool // in Core.open
	home    homeState
}

// replica is one copy of a result.
type replica struct {
	worker int32
	from   int32 // the worker it comes from, until it is there
	next   int32
}

func (c *Core) worker(id WorkerID) *worker {
	if i, ok := c.index[id]; ok {
		return c.workers[i]
	}
	return nil
}

func (c *Core) onJoined(ev WorkerJoined) {
	if c.worker(ev.Worker) != nil || ev.Threads <= 0 {
		return
	}
	w := &worker{
		id: ev.Worker, index: int32(len(c.workers)), name: ev.Name, threads: ev.Threads, memory: ev.Memory, res: ev.Resources,
	}
	c.index[w.id] = w.index
	c.workers = append(c.workers, w)
	c.live = append(c.live, w)
	c.tally(w, 1)
	c.opened(w)
	c.unstrand()
}

// tally adds what a worker has to the cluster's totals, or takes it away.
func (c *Core) tally(w *worker, sign int) {
	c.threads += sign * w.threads
	c.memory += int64(sign) * w.memory
	if w.memory == 0 {
		c.unsaid += sign
	}
}

func (c *Core) onLeft(ev WorkerLeft) {
	w := c.worker(ev.Worker)
	if w == nil {
		return
	}
	delete(c.index, w.id)
	c.workers[w.index] = nil
	c.live = slices.DeleteFunc(c.live, func(o *worker) bool { return o == w })
	c.open = slices.DeleteFunc(c.open, func(o *worker) bool { return o == w })
	c.tally(w, -1)
	procs := slices.Clone(w.procs)
	slices.SortFunc(procs, func(a, b int32) int { return int(c.g.rank[a] - c.g.rank[b]) })
	for _, t := range procs {
		c.leave(t)
		c.again(t)
	}
	c.loseCopies(w)
	c.roots.gone(w)
	if !ev.Killed {
		return
	}
	for _, t := range procs {
		x := &c.tasks[t]
		if ev.Running != nil && !slices.Contains(ev.Running, t) {
			continue
		}
		if x.deaths < math.MaxUint8 {
			x.deaths++
		}
		if int(x.deaths) >= c.cfg.AllowedFailures && x.state.active() {
			c.failFor(t, &KilledError{Key: c.g.Key(t), Deaths: int(x.deaths)})
		}
	}
}

// leave takes a task off the worker that processes it.
func (c *Core) leave(t int32) {
	x := &c.tasks[t]
	w := c.workersOrGone(x.worker)
	if w != nil {
		last := w.procs[len(w.procs)-1]
		w.procs[x.at] = last
		c.tasks[last].at = x.at
		w.procs = w.procs[:len(w.procs)-1]
		w.work -= x.est
		if x.flags&isLong != 0 {
			w.long--
		}
		c.opened(w)
	}
	if x.flags&isLong != 0 {
		c.seceded--
	}
	x.worker = none
	x.flags &^= isLong | isRecalled
}

func (c *Core) workersOrGone(i int32) *worker {
	if i == none {
		return nil
	}
	return c.workers[i]
}

// opened notes that a worker may have a slot.
func (c *Core) opened(w *worker) {
	if !w.isOpen {
		w.isOpen = true
		c.open = append(c.open, w)
	}
}

// shut takes a worker out of those that may have a slot, until something of its own ends.
func (c *Core) shut(w *worker) {
	w.isOpen = false
	c.open = slices.DeleteFunc(c.open, func(o *worker) bool { return o == w })
}

// slots is how many more root tasks a worker may be sent.
func (c *Core) slots(w *worker) int {
	if w.paused {
		return 0
	}
	if c.unlimited() {
		return math.MaxInt
	}
	return max(int(math.Ceil(c.cfg.Saturation*float64(w.threads))), 1) - (len(w.procs) - w.long)
}

func (c *Core) secede(t, attempt int32, on bool) {
	x := c.attempt(t, attempt)
	if x == nil || (x.flags&isLong != 0) == on {
		return
	}
	w := c.workers[x.worker]
	x.flags ^= isLong
	if !on {
		w.long--
		c.seceded--
		return
	}
	w.long++
	c.seceded++
	c.opened(w)
}

// strand keeps a task for which there is no worker.
func (c *Core) strand(t int32) {
	c.to(t, onStrand)
	c.tasks[t].at = int32(len(c.stranded))
	c.stranded = append(c.stranded, t)
}

func (c *Core) leaveStranded(t int32) {
	last := c.stranded[len(c.stranded)-1]
	c.stranded[c.tasks[t].at] = last
	c.tasks[last].at = c.tasks[t].at
	c.stranded = c.stranded[:len(c.stranded)-1]
}

// unstrand places anew what no worker could run.
func (c *Core) unstrand() {
	for _, t := range c.stranded {
		c.to(t, onUnmeet)
		c.tasks[t].waits = 0
		c.freshen(t)
	}
	c.stranded = c.stranded[:0]
}
