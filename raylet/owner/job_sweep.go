package owner

import (
	"maps"
	"slices"

	"mobula/internal/ids"
	"mobula/raylet/owner/task"
	"mobula/wire"
)

// What concerns every record there is, when a client is gone or the driver is, is done in slices
// of a few thousand records, a step each: between two of them the owner goes on.

const sweepPart = 2048 // records a slice: about a millisecond

func (jb *job) startSweep(cl *clientRec) {
	jb.sweeps.Push(&sweep{client: cl})
	jb.sweepSlice()
}

// sweepSlice does the next slice, and asks for the step of the one after.
func (jb *job) sweepSlice() {
	budget := jb.cfg.sweepPart
	for jb.sweeps.Len() > 0 && budget > 0 {
		s := jb.sweeps.Front()
		n, over := jb.sweepOn(s, budget)
		if budget -= n; over {
			jb.sweeps.Pop()
			jb.swept(s)
		}
	}
	if jb.sweeps.Len() > 0 && jb.sweeping == nil {
		jb.sweeping = jb.timers.add(jb.now, timer{kind: timerSweep})
	}
}

// sweepAll does what is left in one go.
func (jb *job) sweepAll() {
	for jb.sweeps.Len() > 0 {
		jb.sweepSlice()
	}
}

// sweepOn goes on with one sweep and says how many records it saw, and whether it is over.
func (jb *job) sweepOn(s *sweep, budget int) (n int, over bool) {
	defer func() { clear(jb.sweepBuf) }()
	if jb.nothingToSweep(s) {
		return 0, true
	}
	if !s.tasks.done {
		jb.sweepBuf = jb.tasks.scan(&s.tasks, budget, jb.sweepBuf[:0])
		n = len(jb.sweepBuf)
		jb.sweepTasks(s)
		return n, false
	}
	if s.client == nil {
		return 0, true
	}
	jb.sweepBuf = jb.objects.puts.scan(&s.puts, budget, jb.sweepBuf[:0])
	for _, o := range jb.sweepBuf {
		jb.objects.dropHandle(s.client, o)
	}
	if n = len(jb.sweepBuf); !s.puts.done {
		return n, false
	}
	for _, id := range slices.SortedFunc(maps.Keys(jb.objects.placeholders), ids.ObjectID.Compare) {
		jb.objects.dropHandle(s.client, jb.objects.placeholders[id])
	}
	if s.client.handles > 0 { // one moved to a record behind the cursor: a placeholder was filled
		*s = sweep{client: s.client}
		return n, false
	}
	return n, true
}

// nothingToSweep tells that no record can be left that a sweep is for.
func (jb *job) nothingToSweep(s *sweep) bool {
	if s.client != nil {
		return s.client.handles == 0 && jb.tasks.streamCount == 0
	}
	ended := jb.tasks.byState[task.Finished] + jb.tasks.byState[task.Failed] + jb.tasks.byState[task.Cancelled]
	return jb.tasks.n == ended
}

func (jb *job) sweepTasks(s *sweep) {
	for _, o := range jb.sweepBuf {
		t := o.rec
		switch {
		case t.flags&taskReaped != 0:
		case s.client != nil:
			jb.dropTaskHandles(s.client, t)
		case !t.state.Terminal() && (jb.ended || !t.outlives()):
			jb.life.cancelTask(t, true)
		}
	}
}

// dropTaskHandles takes what a client has of a task's returns, or of its stream.
func (jb *job) dropTaskHandles(cl *clientRec, t *taskRec) {
	if t.nret == wire.Streaming && t.x.stream.reads(cl) {
		jb.streams.leaveStream(t, cl)
	}
	t.eachReturn(func(o *objRec) { jb.objects.dropHandle(cl, o) })
}

// swept follows up on a sweep that is over.
func (jb *job) swept(s *sweep) {
	if s.client != nil {
		jb.clients.maybeForget(s.client)
		return
	}
	for _, id := range slices.Sorted(maps.Keys(jb.leases.classes.byID)) {
		jb.leases.touch(jb.leases.classes.byID[id]) // nothing was dispatched meanwhile
	}
}

// cancelling tells that what the last driver has left is being cancelled: nothing is to start.
func (jb *job) cancelling() bool {
	for _, s := range jb.sweeps.All() {
		if s.client == nil {
			return true
		}
	}
	return false
}
