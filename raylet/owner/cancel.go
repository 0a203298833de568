package owner

import (
	"strconv"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/raylet/owner/task"
	"mobula/raylet/sched"
	"mobula/wire"
)

// cancel cancels a task and, if asked, what it has submitted.
func (c *Core) cancel(m *wire.Cancel) {
	if job := m.Task.Job(); job != c.cfg.Job {
		c.toOwner(job, m)
		return
	}
	todo := []ids.TaskID{m.Task}
	seen := map[ids.TaskID]bool{m.Task: true}
	for len(todo) > 0 {
		id := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if m.Recursive {
			for _, kid := range c.kids[id] {
				if !seen[kid] {
					seen[kid] = true
					todo = append(todo, kid)
				}
			}
		}
		if t := c.tasks.task(id); t != nil {
			insists := m.Insist && t.state.OnWorker() && !t.isCall()
			if insists {
				t.ext().insist = true // which cancelTask logs
			}
			c.cancelTask(t, m.Force)
			if insists && t.state.OnWorker() && !t.inGrace() {
				c.giveGrace(t)
			}
		}
	}
}

// cancelTask cancels one: what waits never starts; what runs is told, and with force is
// given up at once.
func (c *Core) cancelTask(t *taskRec, force bool) {
	if t.state.Terminal() {
		c.cutStream(t)
		return
	}
	t.flags |= taskCancelled
	if t.isCreation() {
		c.killActor(&wire.KillActor{Actor: t.actor.id})
		return
	}
	if !t.state.OnWorker() {
		c.withdraw(t)
		c.end(t, task.Cancel, c.cancelled(t))
		c.cutStream(t)
		return
	}
	c.toLease(t.lease, &wire.CancelTask{Task: t.id(), Abandon: force})
	if !force {
		c.logRetry(t)
	} else {
		c.abandon(t)
		c.end(t, task.Cancel, c.cancelled(t))
	}
	c.cutStream(t)
}

// withdraw takes a task away from where it waits before it was pushed.
func (c *Core) withdraw(t *taskRec) {
	if k := t.class; k != nil {
		c.touch(k) // its Want may change
		if t.x != nil && t.x.solo != nil {
			c.touch(t.x.solo)
		}
	}
	if l := t.lease; l != nil { // its arguments are being pinned
		c.unfetch(l, t)
		t.lease = nil
		c.unpinArgs(t)
		c.touchLease(l)
	}
}

// abandon gives up on the slot of a running task: a goroutine cannot be killed, so the
// process is drained and ended. An actor's is not: other actors live in it.
func (c *Core) abandon(t *taskRec) {
	l := t.lease
	l.lane.take(t.id()) // its pins stay: it may read its arguments until it returns or its process ends
	t.lease = nil
	t.flags &^= taskPinned
	c.laneMoved(l)
	if l.actor != nil {
		return
	}
	l.worker.drained = true
	c.closeLease(l)
	c.toSched(sched.DrainWorker{Lease: l.id, Worker: l.worker.id, Err: errs.New(errs.CodeCancelled, "%s (task %v) was abandoned", t.name(), t.id())})
	for _, other := range l.worker.leases {
		if other.actor == nil {
			c.closeLease(other)
		}
	}
}

func (c *Core) cancelled(t *taskRec) *errs.Error {
	e := &errs.Error{Code: errs.CodeCancelled, Name: t.name(), Task: t.id().String(), Msg: t.name() + " was cancelled"}
	if t.x != nil && t.x.err != nil && t.x.err.Code != errs.CodeCancelled {
		e.Cause = []*errs.Error{t.x.err}
	}
	return e
}

func (t *taskRec) deadlineAt() int64 {
	if t.spec == nil {
		return 0
	}
	return t.spec.Deadline
}

// deadline fails a task that ran past its deadline. What runs is told, and has a grace to
// end before its lane is given up.
func (c *Core) deadline(t *taskRec) {
	t.x.timer = nil
	if t.state.Terminal() {
		return
	}
	if t.isCreation() {
		c.killActorWith(t.actor, c.pastDeadline(t))
		return
	}
	if !t.state.OnWorker() {
		c.withdraw(t)
		c.fail(t, c.pastDeadline(t))
		return
	}
	c.tellToEnd(t)
	c.fail(t, c.pastDeadline(t))
}

// tellToEnd tells a worker to end a task that fails, and gives it a grace.
func (c *Core) tellToEnd(t *taskRec) {
	c.toLease(t.lease, &wire.CancelTask{Task: t.id()})
	c.giveGrace(t)
}

// giveGrace has graceOver called, unless the task ends before.
func (c *Core) giveGrace(t *taskRec) {
	c.setTimer(t, c.now+int64(c.cfg.CancelGrace), timerGrace)
}

// inGrace tells whether a task was told to end, and when that is over: asking again gives it no more time.
func (t *taskRec) inGrace() bool {
	return t.x != nil && t.x.timer != nil && t.x.timer.kind == timerGrace
}

func (c *Core) pastDeadline(t *taskRec) *errs.Error {
	return &errs.Error{
		Code: errs.CodeDeadline, Name: t.name(), Task: t.id().String(),
		Msg: t.name() + " was " + t.state.String() + " at its deadline",
	}
}

// graceOver gives up the lane of a task that was told to end and has not.
func (c *Core) graceOver(t *taskRec) {
	t.x.timer = nil
	if !t.state.Terminal() { // else its reference has an error already
		if t.lease != nil && t.lease.lane.head() != t { // another holds up the worker, which is not to die for it
			c.giveGrace(t)
			return
		}
		c.cancelTask(t, true)
		return
	}
	if t.lease != nil {
		c.toLease(t.lease, &wire.CancelTask{Task: t.id(), Abandon: true})
		c.abandon(t)
		c.reap(t)
	}
}

func utoa(n uint32) string { return strconv.FormatUint(uint64(n), 10) }

func itoa(n int32) string { return strconv.FormatInt(int64(n), 10) }
