package graph

import (
	"math"
	"slices"

	"mobula/internal/heap"
)

// Dask's two policies, for comparison.

// plainQueue withholds root tasks and sends the first one in order to the least busy worker, as Dask does.
type plainQueue struct {
	*placement
	ranks []int32 // a heap
}

func (q *plainQueue) takes(int32) bool   { return true }
func (q *plainQueue) push(t int32)       { heap.Push(&q.ranks, q.g.rank[t], lower) }
func (q *plainQueue) workerLeft(*worker) {}

func lower(a, b *int32) bool { return *a < *b }

func (q *plainQueue) settle() {
	for len(q.ranks) > 0 {
		t := q.g.byRank[q.ranks[0]]
		if q.tasks.list[t].state != Queued {
			heap.Pop(&q.ranks, lower)
			continue
		}
		w := q.workers.leastFull(nil)
		if w == nil {
			return
		}
		heap.Pop(&q.ranks, lower)
		q.placement.assign(t, w)
	}
}

// batches sends every root task at once, in runs of neighbours of a group, as Dask does
// without withholding.
type batches struct {
	*placement
	ready []int32
	last  []int32 // by group: index of the worker of the run
	left  []int32 // and how many more tasks that worker takes
}

func newBatches(ps *placement) *batches {
	g := ps.g
	b := &batches{placement: ps, last: make([]int32, len(g.groups)), left: make([]int32, len(g.groups))}
	for i := range b.last {
		b.last[i] = none
	}
	return b
}

func (b *batches) takes(int32) bool   { return true }
func (b *batches) push(t int32)       { b.ready = append(b.ready, t) }
func (b *batches) workerLeft(*worker) {}

func (b *batches) settle() {
	if len(b.ready) == 0 {
		return
	}
	ready := b.ready
	b.ready = nil
	for i, t := range ready {
		if b.tasks.list[t].state != Queued {
			continue
		}
		w := b.next(t)
		if w == nil { // all are paused
			b.ready = append(b.ready, ready[i:]...)
			return
		}
		b.placement.assign(t, w)
	}
}

func (b *batches) next(t int32) *worker {
	g := b.g.group[t]
	w := b.workers.at(b.last[g])
	if w == nil || w.paused || b.left[g] <= 0 {
		pool := b.workers.running()
		if idle := slices.DeleteFunc(slices.Clone(pool), func(w *worker) bool { return len(w.procs) >= w.threads }); len(idle) > 0 {
			pool = idle
		}
		if w = b.placement.best(t, pool); w == nil {
			return nil
		}
		b.last[g] = w.index
		b.left[g] = int32(math.Floor(float64(b.g.groups[g].size) / float64(b.workers.threads) * float64(w.threads)))
	}
	b.left[g]--
	return w
}
