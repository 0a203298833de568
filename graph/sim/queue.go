package sim

import (
	"time"

	"mobula/graph"
	"mobula/internal/heap"
)

// kind is the kind of an event of the simulation.
type kind uint8

const (
	evTick kind = iota
	evSample
	evFault
	evCore // a message reaches the core; all kinds below reach a worker or happen there
	evRun
	evFetch
	evFlow   // a copy's bytes begin to arrive
	evArrive // all bytes of the copy have arrived
	evEnd    // a task ends
	evStop
	evRecall
	evFree
)

func (k kind) isWork() bool { return k >= evCore }

// event is an entry of the queue.
type event struct {
	at, seq int64
	kind    kind
	worker  int32
	task    int32
	n       int32 // attempt, or a fetch's source
	rank    int32
	fetch   int64 // a fetch's number, or a task's duration
	msg     graph.Event
}

func (e *event) before(o *event) bool { return e.at < o.at || e.at == o.at && e.seq < o.seq }

// queue is a heap of events, the earliest first; events at the same time keep their order.
type queue []event

func (q *queue) push(e event) { heap.Push((*[]event)(q), e, (*event).before) }
func (q *queue) pop() event   { return heap.Pop((*[]event)(q), (*event).before) }

// ready is a task that could begin.
type ready struct{ rank, task int32 }

func (r *ready) before(o *ready) bool { return r.rank < o.rank }

// readyHeap is a heap of tasks, the lowest rank first.
type readyHeap []ready

func (h *readyHeap) push(rank, task int32) {
	heap.Push((*[]ready)(h), ready{rank, task}, (*ready).before)
}
func (h *readyHeap) pop() ready { return heap.Pop((*[]ready)(h), (*ready).before) }

// duration is how long a task runs: the workload's duration, longer or shorter by the seed.
func (r *run) duration(t int32) time.Duration {
	d := r.cfg.Duration(t)
	if r.cfg.Jitter > 0 {
		u := float64(mix(r.cfg.Seed^uint64(t)*0x9e3779b97f4a7c15)>>11) / (1 << 53)
		d += time.Duration(float64(d) * r.cfg.Jitter * (2*u - 1))
	}
	return max(d, time.Microsecond)
}

// mix is the finaliser of splitmix64.
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
