package graph

import (
	"math"
	"slices"

	"mobula/internal/heap"
)

// The two policies of Dask, to compare with.

// plainQueue withholds root tasks and sends the first in order to the least busy worker, as
// Dask does.
type plainQueue struct{ ranks []int32 } // a heap

func (q *plainQueue) takes(int32) bool      { return true }
func (q *plainQueue) push(c *Core, t int32) { heap.Push(&q.ranks, c.g.rank[t], lower) }
func (q *plainQueue) gone(*worker)          {}

func lower(a, b *int32) bool { return *a < *b }

func (q *plainQueue) settle(c *Core) {
	for len(q.ranks) > 0 {
		t := c.g.byRank[q.ranks[0]]
		if c.tasks[t].state != Queued {
			heap.Pop(&q.ranks, lower)
			continue
		}
		w := c.leastFull(nil)
		if w == nil {
			return
		}
		heap.Pop(&q.ranks, lower)
		c.assign(t, w)
	}
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
