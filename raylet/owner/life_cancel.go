package owner

import (
	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/raylet/owner/task"
	"mobula/raylet/sched"
	"mobula/wire"
)

// cancel cancels a task and, if asked, what it has submitted.
func (lf *life) cancel(m *wire.Cancel) {
	if job := m.Task.Job(); job != lf.cfg.Job {
		lf.toOwner(job, Words{m})
		return
	}
	lf.cancelAll([]ids.TaskID{m.Task}, m)
}

// cancelAll cancels some tasks, as m says.
func (lf *life) cancelAll(todo []ids.TaskID, m *wire.Cancel) {
	seen := make(map[ids.TaskID]bool)
	for _, id := range todo {
		seen[id] = true
	}
	for len(todo) > 0 {
		id := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		t := lf.tasks.task(id)
		if m.Recursive && (t == nil || !t.isElsewhere()) {
			for _, child := range lf.tasks.children[id] {
				if !seen[child] {
					seen[child] = true
					todo = append(todo, child)
				}
			}
		}
		if t != nil {
			lf.passCancel(t, m)
			insists := m.Insist && t.state.OnWorker() && !t.isCall()
			if insists {
				t.ext().forceAfterGrace = true // which cancelTask logs
			}
			lf.cancelTask(t, m.Force)
			if insists && t.state.OnWorker() && !t.inGracePeriod() {
				lf.startGrace(t)
			}
		}
	}
}

// cancelTask cancels one: what waits never starts; what runs is told, and with force is
// given up at once.
func (lf *life) cancelTask(t *taskRec, force bool) {
	if t.state.Terminal() {
		lf.streams.cutStream(t)
		return
	}
	t.flags |= taskCancelled
	if t.isCreation() {
		lf.actors.killActor(&wire.KillActor{Actor: t.actor.id})
		return
	}
	if t.isElsewhere() && !force { // who has it is told
		lf.streams.cutStream(t)
		return
	}
	if !t.state.OnWorker() {
		lf.withdraw(t)
		lf.end(t, task.Cancel, t.cancelledError())
		lf.streams.cutStream(t)
		return
	}
	lf.leases.toLease(t.lease, &wire.CancelTask{Task: t.id(), Abandon: force})
	if !force {
		lf.journal.logRetry(t)
	} else {
		lf.abandon(t)
		lf.end(t, task.Cancel, t.cancelledError())
	}
	lf.streams.cutStream(t)
}

// withdraw takes a task away from where it waits before it was pushed.
func (lf *life) withdraw(t *taskRec) {
	if k := t.class; k != nil {
		lf.leases.touch(k) // its Want may change
		if t.x != nil && t.x.isolatedClass != nil {
			lf.leases.touch(t.x.isolatedClass)
		}
	}
	if l := t.lease; l != nil { // its arguments are being pinned
		lf.leases.cancelFetch(l, t)
		lf.memory.unpinArgs(t)
		t.lease = nil
		lf.leases.touchLease(l)
	}
}

// abandon gives up on the slot of a running task: a goroutine cannot be killed, so the
// process is drained and ended. An actor's is not: other actors live in it.
func (lf *life) abandon(t *taskRec) {
	l := t.lease
	l.lane.take(t.id())
	lf.memory.abandonArgs(t)
	t.lease = nil
	lf.leases.laneMoved(l)
	if l.actor != nil {
		return
	}
	l.worker.drainRequested = true
	lf.leases.closeLease(l)
	lf.toSched(sched.DrainWorker{Lease: l.id, Worker: l.worker.id, Err: errs.New(errs.CodeCancelled, "%s (task %v) was abandoned", t.name(), t.id())})
	for _, other := range l.worker.leases {
		if other.actor == nil {
			lf.leases.closeLease(other)
		}
	}
}

// deadline fails a task that ran past its deadline. What runs is told, and has a grace to
// end before its lane is given up.
func (lf *life) deadline(t *taskRec) {
	t.x.timer = nil
	if t.state.Terminal() {
		return
	}
	if t.isCreation() {
		lf.actors.killActorWith(t.actor, lf.pastDeadline(t))
		return
	}
	if !t.state.OnWorker() {
		lf.withdraw(t)
		lf.fail(t, lf.pastDeadline(t))
		return
	}
	lf.requestEnd(t)
	lf.fail(t, lf.pastDeadline(t))
}

// requestEnd tells a worker to end a task that fails, and gives it a grace.
func (lf *life) requestEnd(t *taskRec) {
	lf.leases.toLease(t.lease, &wire.CancelTask{Task: t.id()})
	lf.startGrace(t)
}

// startGrace has graceExpired called, unless the task ends before.
func (lf *life) startGrace(t *taskRec) {
	lf.tasks.setTimer(t, lf.now+int64(lf.cfg.CancelGrace), timerGrace)
}

// inGracePeriod tells whether a task was told to end, and when that is over: asking again gives it no more time.
func (t *taskRec) inGracePeriod() bool {
	return t.x != nil && t.x.timer != nil && t.x.timer.kind == timerGrace
}

func (lf *life) pastDeadline(t *taskRec) *errs.Error {
	return &errs.Error{
		Code: errs.CodeDeadline, Name: t.name(), Task: t.id().String(),
		Msg: t.name() + " was " + t.state.String() + " at its deadline",
	}
}

// graceExpired gives up the lane of a task that was told to end and has not.
func (lf *life) graceExpired(t *taskRec) {
	t.x.timer = nil
	if !t.state.Terminal() { // else its reference has an error already
		if t.lease != nil && t.lease.lane.head() != t { // another holds up the worker, which is not to die for it
			lf.startGrace(t)
			return
		}
		lf.cancelTask(t, true)
		return
	}
	if t.lease != nil {
		lf.leases.toLease(t.lease, &wire.CancelTask{Task: t.id(), Abandon: true})
		lf.abandon(t)
		lf.reap(t)
	}
}
