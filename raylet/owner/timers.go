package owner

import "mobula/internal/heap"

// timerKind says what a timer is for.
type timerKind uint8

const (
	timerDeadline   timerKind = iota + 1 // of a task
	timerBackoff                         // a task runs again
	timerGrace                           // a task was told to end and may be abandoned
	timerIdle                            // of a lease
	timerSettle                          // of a worker that is gone
	timerOrder                           // a caller's next call is missing
	timerPack                            // packs that were not answered
	timerResync                          // clients that do not say what they hold
	timerSweep                           // the next slice of a sweep
	timerInquiry                         // who brought a process down is still asked
	timerStop                            // an actor's close hook
	timerWord                            // of a lease: its actor's owner, another job's, says nothing
	timerNear                            // a task may go where its arguments are not
	timerSpread                          // a node that tasks are to be spread to does not come up
	timerAsk                             // an object that a store lacked is asked for again
	timerBring                           // a node's store is told anew of an object that it lacked, for another job
	timerBringAgain                      // the owner of another home has not answered yet
	timerLeave                           // a job that ends waits for owners of other homes no longer
)

// timerHeap is the timers that are set, earliest first.
type timerHeap struct{ heap.Indexed[*timer] }

func newTimerHeap() timerHeap {
	return timerHeap{heap.NewIndexed(func(a, b **timer) bool { return (*a).at < (*b).at }, func(t **timer, i int) { (*t).i = i })}
}

func (h *timerHeap) add(at int64, t timer) *timer {
	t.at = at
	h.Push(&t)
	return &t
}

// remove takes a timer off, unless it has been.
func (h *timerHeap) remove(t *timer) {
	if t.i >= 0 {
		h.Remove(t.i)
	}
}
