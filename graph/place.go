package graph

import (
	"math"
	"slices"
)

// measure is what was seen of a group's or a prefix's tasks.
type measure struct {
	n, bytes, ns int64
}

func (m *measure) add(bytes, ns int64) {
	m.n++
	m.bytes += bytes
	m.ns += ns
}

func (c *Core) learn(t int32, bytes, ns int64) {
	c.all.add(bytes, ns)
	g := c.g.group[t]
	c.known[g].add(bytes, ns)
	c.kinds[c.g.groups[g].kind].add(bytes, ns)
}

// seen gives what is known of tasks like t, or nil: its group, else its prefix.
func (c *Core) seen(t int32) *measure {
	g := c.g.group[t]
	if m := &c.known[g]; m.n > 0 {
		return m
	}
	if m := &c.kinds[c.g.groups[g].kind]; m.n > 0 {
		return m
	}
	return nil
}

// size is what a result is expected to take, in bytes, or 1 as long as nothing is known at all.
func (c *Core) size(t int32) float64 {
	if c.tasks[t].state == Memory {
		return float64(c.tasks[t].bytes)
	}
	if m := c.seen(t); m != nil {
		return float64(m.bytes) / float64(m.n)
	}
	return c.mean()
}

// mean is what a result takes on average, as far as is known.
func (c *Core) mean() float64 {
	if c.all.n == 0 || c.all.bytes == 0 {
		return 1
	}
	return float64(c.all.bytes) / float64(c.all.n)
}

// meanDuration is how long a task takes on average, in ns, as far as is known.
func (c *Core) meanDuration() int64 {
	if c.all.n == 0 {
		return defaultDuration
	}
	return c.all.ns / c.all.n
}

// duration is how long a task is expected to run.
func (c *Core) duration(t int32) int64 {
	if m := c.seen(t); m != nil {
		return m.ns / m.n
	}
	return defaultDuration
}

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

// plainQueue withholds root tasks and sends the first in order to the least busy worker, as
// Dask does.
type plainQueue struct{ heap rankHeap }

func (q *plainQueue) takes(int32) bool      { return true }
func (q *plainQueue) push(c *Core, t int32) { q.heap.push(c.g.rank[t]) }
func (q *plainQueue) gone(*worker)          {}

func (q *plainQueue) settle(c *Core) {
	for len(q.heap) > 0 {
		t := c.g.byRank[q.heap[0]]
		if c.tasks[t].state != Queued {
			q.heap.pop()
			continue
		}
		w := c.leastFull(nil)
		if w == nil {
			return
		}
		q.heap.pop()
		c.assign(t, w)
	}
}

// leastFull is the open worker with the fewest tasks a thread of those that admits lets pass, or nil. Those without a slot are not
// open any more.
func (c *Core) leastFull(admits func(*worker) bool) *worker {
	var best *worker
	keep := c.open[:0]
	for _, w := range c.open {
		if c.slots(w) <= 0 {
			w.isOpen = false
			continue
		}
		keep = append(keep, w)
		if (best == nil || len(w.procs)*best.threads < len(best.procs)*w.threads) && (admits == nil || admits(w)) {
			best = w
		}
	}
	clear(c.open[len(keep):])
	c.open = keep
	return best
}

// batches sends every root task at once, in runs of neighbours of a group, as Dask does
// without withholding.
type batches struct {
	ready []int32
	last  []int32 // by group: index of the worker of the run
	left  []int32 // and how many more it takes
}

func newBatches(g *Graph) *batches {
	b := &batches{last: make([]int32, len(g.groups)), left: make([]int32, len(g.groups))}
	for i := range b.last {
		b.last[i] = none
	}
	return b
}

func (b *batches) takes(int32) bool      { return true }
func (b *batches) push(_ *Core, t int32) { b.ready = append(b.ready, t) }
func (b *batches) gone(*worker)          {}

func (b *batches) settle(c *Core) {
	if len(b.ready) == 0 {
		return
	}
	ready := b.ready
	b.ready = nil
	for i, t := range ready {
		if c.tasks[t].state != Queued {
			continue
		}
		w := b.next(c, t)
		if w == nil { // all are paused
			b.ready = append(b.ready, ready[i:]...)
			return
		}
		c.assign(t, w)
	}
}

func (b *batches) next(c *Core, t int32) *worker {
	g := c.g.group[t]
	w := c.workersOrGone(b.last[g])
	if w == nil || w.paused || b.left[g] <= 0 {
		pool := c.running()
		if idle := slices.DeleteFunc(slices.Clone(pool), func(w *worker) bool { return len(w.procs) >= w.threads }); len(idle) > 0 {
			pool = idle
		}
		if w = c.best(t, pool); w == nil {
			return nil
		}
		b.last[g] = w.index
		b.left[g] = int32(math.Floor(float64(c.g.groups[g].size) / float64(c.threads) * float64(w.threads)))
	}
	b.left[g]--
	return w
}

// rankHeap is a heap of ranks, the lowest first.
type rankHeap []int32

func (h *rankHeap) push(r int32) {
	*h = append(*h, r)
	s := *h
	for i := len(s) - 1; i > 0; {
		p := (i - 1) / 2
		if s[p] <= s[i] {
			return
		}
		s[p], s[i] = s[i], s[p]
		i = p
	}
}

func (h *rankHeap) pop() int32 {
	s := *h
	top, n := s[0], len(s)-1
	s[0] = s[n]
	s = s[:n]
	*h = s
	for i := 0; ; {
		l := 2*i + 1
		if l >= n {
			return top
		}
		if l+1 < n && s[l+1] < s[l] {
			l++
		}
		if s[i] <= s[l] {
			return top
		}
		s[i], s[l] = s[l], s[i]
		i = l
	}
}
