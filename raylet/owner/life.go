package owner

import (
	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/raylet/owner/object"
	"mobula/raylet/owner/record"
	"mobula/raylet/owner/task"
	"mobula/wire"
)

// accept starts the life of a task whose record is new, at its submission or when the log
// is read: it takes its references and looks at its arguments. parent has submitted it; nil: it is not known any more.
func (lf *life) accept(t, parent *taskRec) {
	lf.stats.Submitted++
	spec := t.spec
	lf.noteParent(t, parent)
	if spec.Kind != wire.TaskNormal {
		if !lf.actors.acceptActorTask(t) {
			return
		}
	} else {
		lf.objects.holdArgs(t)
		t.class = lf.leases.classOf(wire.TaskNormal, spec.Opts)
	}
	if t.class != nil {
		t.class.live++
		t.flags |= taskCounted
	}
	if spec.Deadline != 0 {
		lf.tasks.setTimer(t, spec.Deadline, timerDeadline)
	}
	if t.flags&taskWaitsName == 0 {
		lf.await(t)
	}
}

// noteParent notes who has submitted a task that has not ended.
func (lf *life) noteParent(t, parent *taskRec) {
	switch {
	case parent != nil && !parent.state.Terminal():
		parent.flags |= taskHasChildren
	case lf.tasks.isMaking(t.spec.Parent):
	case parent == nil && lf.recovering && lf.cfg.StraightCalls && !t.state.Terminal(): // it may turn out to be
	default:
		return
	}
	lf.tasks.addChild(t.spec.Parent, t.spec.ID)
}

// noteAdopted writes down an adopted call whose end was just written down: see adoptedCall.
func (lf *life) noteAdopted(t *taskRec) {
	if t.x == nil || t.x.adopted == nil {
		return
	}
	if t.isElsewhere() {
		lf.tasks.leaveElsewhere(t)
		if t.live > 0 && !t.x.adopted.logged {
			lf.journal.logSubmit(t, ids.ActorID{})
		}
	}
	lf.tasks.settled = append(lf.tasks.settled, t.id())
}

// afterEnd is what every end of a task has in common.
func (lf *life) afterEnd(t *taskRec) {
	if t.x != nil {
		if t.lease == nil || t.state == task.Finished {
			lf.tasks.stopTimer(t)
		}
		if t.x.group != nil && !t.isCreation() { // an actor stays a suspect while it lives
			t.x.group = nil
		}
	}
	if t.flags&taskHasChildren != 0 {
		t.flags &^= taskHasChildren
		if !lf.tasks.isMaking(t.id()) {
			delete(lf.tasks.children, t.id())
		}
	}
	if t.flags&taskCounted != 0 {
		t.flags &^= taskCounted
		t.class.live--
	}
	if t.isCall() {
		lf.calls.callOver(t)
	}
	lf.lineage.keepLineage(t)
	if t.live == 0 {
		lf.reap(t)
	}
}

// end ends a task without results.
func (lf *life) end(t *taskRec, ev task.Event, err *errs.Error) {
	t.unlist()
	lf.journal.logFailed(t, err)
	lf.noteAdopted(t)
	if lf.cfg.Transitions {
		t.ext().err = err
	}
	lf.tasks.move(t, ev)
	switch {
	case t.isCounted():
	case ev == task.Cancel:
		lf.stats.Cancelled++
	default:
		lf.stats.Failed++
	}
	if t.nret == wire.Streaming {
		lf.streams.failStream(t, err)
	} else if t.nret > 0 {
		res := errorResult(err)
		for i := range uint32(t.nret) {
			if o := t.ret(i); o.state == object.Pending {
				lf.objects.resolve(o, res, object.SetError)
			}
		}
	}
	if t.isCreation() {
		lf.actors.creationFailed(t.actor, err)
	}
	lf.promises.breakPromises(t, err)
	lf.afterEnd(t)
}

// fail ends a task with an error, which then says which task it is of: every return that is not resolved has it.
func (lf *life) fail(t *taskRec, err *errs.Error) {
	if err.Task == "" {
		own := *err // it may be others' too
		own.Task, err = t.id().String(), &own
	}
	lf.end(t, task.Fail, err)
}

// requeue lets a task run again, at the head of its queue if front; not one that was cancelled meanwhile.
func (lf *life) requeue(t *taskRec, front bool) {
	if t.flags&taskCancelled != 0 {
		lf.end(t, task.Cancel, t.cancelledError())
		return
	}
	if t.x != nil {
		t.x.restartRequested = false
	}
	t.unlist()
	lf.tasks.move(t, task.Requeue)
	if front {
		t.flags |= taskFront
	}
	lf.await(t)
}

// unpush puts a task that was not started at the head of its queue. The attempt's number
// is used again: no trace of it is anywhere.
func (lf *life) unpush(t *taskRec) {
	lf.memory.unpinArgs(t)
	lf.leases.unassign(t)
	if t.state.Terminal() {
		lf.reap(t)
		return
	}
	t.start--
	lf.requeue(t, true)
}

// reap removes the record of a task that has ended and whose returns nothing refers to.
func (lf *life) reap(t *taskRec) {
	if !t.state.Terminal() || t.live > 0 || t.flags&taskReaped != 0 || t.isCreation() && !t.actor.ended() {
		return
	}
	t.flags |= taskReaped
	lf.objects.releaseArgs(t)
	lf.lineage.dropLineage(t)
	lf.tasks.byState[t.state]--
	lf.tasks.remove(&t.ret0.id)
	lf.tasks.reaped = append(lf.tasks.reaped, t)
	if t.isCreation() {
		lf.actors.setCause(t.actor, nil, nil)
		delete(lf.actors.byID, t.actor.id)
	}
	lf.journal.forget(ids.ObjectID{Task: t.id(), Index: record.WholeTask}, &t.ret0)
	lf.journal.cookies = append(lf.journal.cookies, &t.cookie, &t.doneAt)
	if t.ret0.flags&objLogged != 0 {
		lf.journal.freeCookie(&t.ret0)
	}
	if t.isCreation() {
		lf.journal.cookies = append(lf.journal.cookies, &t.actor.loggedAt)
	}
	if t.x == nil {
		return
	}
	lf.journal.cookies = append(append(lf.journal.cookies, &t.x.retryAt, &t.x.closedAt), t.x.ends...)
	if t.x.packed {
		t.eachReturn(func(o *objRec) { lf.journal.freePacked(o.id) })
	}
	lf.objects.budget.returns -= int64(len(t.x.more)) * returnCost
	for i := range t.x.more {
		lf.journal.freeCookie(&t.x.more[i])
	}
	if t.x.stream != nil {
		lf.tasks.streamCount--
		t.x.stream.eachItem(lf.journal.freeCookie)
	}
}

// reach brings a task that waits to where a worker has it.
func (lf *life) reach(t *taskRec) {
	t.unlist()
	if t.isCall() {
		lf.calls.hadTurn(t)
	}
	t.gen++ // what it waited for does not matter any more
	lf.tasks.setState(t, task.Submitted)
}
