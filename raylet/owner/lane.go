package owner

import (
	"math"
	"slices"

	"mobula/internal/ids"
	"mobula/internal/queue"
)

// lane is the tasks that were pushed over a lease and are not done, in the order pushed.
type lane struct{ queue.Queue[*taskRec] }

// head is the task that runs; nil: none.
func (l *lane) head() *taskRec {
	if l.Len() == 0 {
		return nil
	}
	return l.Front()
}

// take takes the task with this id off, wherever it is; tasks end nearly in order.
func (l *lane) take(id ids.TaskID) *taskRec { return l.takeAttempt(id, math.MaxUint32) }

// takeAttempt takes a task off when an attempt has ended. The end of an earlier attempt, told again, takes nothing.
func (l *lane) takeAttempt(id ids.TaskID, attempt uint32) *taskRec {
	for i, t := range l.All() {
		if t.ret0.id.Task == id && t.start <= attempt {
			return l.Remove(i)
		}
	}
	return nil
}

// contains tells whether any task of the lane is so.
func (l *lane) contains(so func(*taskRec) bool) bool { return slices.ContainsFunc(l.All(), so) }

// drain empties the lane and gives what was in it.
func (l *lane) drain() []*taskRec {
	out := l.All()
	*l = lane{}
	return out
}
