package owner

import (
	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/objectstore"
	"mobula/raylet/owner/lease"
	"mobula/raylet/owner/object"
	"mobula/raylet/owner/task"
	"mobula/wire"
)

// done ends an attempt.
func (lf *life) done(cl *clientRec, d *wire.Done) {
	l := lf.leases.lastLease
	if l == nil || l.id != d.Lease {
		l = lf.leases.byID[d.Lease]
		lf.leases.lastLease = l
	}
	var t *taskRec
	if l != nil && l.worker == cl {
		t = l.lane.takeAttempt(d.Task, d.Attempt)
	}
	if t == nil || t.start != d.Attempt { // stale, abandoned, or sent by a core before this one
		lf.memory.dropArgs(cl, d)
	}
	if t == nil && lf.recovering && lf.keepsPlace(cl, d) {
		return
	}
	if t == nil && lf.recovering {
		t, l = lf.findTaskOfDone(d), nil
	}
	if t == nil {
		lf.values.dropResults(cl, d)
		return
	}
	if l != nil {
		lf.leases.laneMoved(l)
	}
	lf.memory.argsDone(t, d)
	ran := d.Times.Ended - d.Times.Started
	if t.class != nil && d.Times.Ended != 0 && ran >= 0 {
		lf.leases.measured(t, ran)
	}
	if t.state.Terminal() { // it was given up: its reference has an error already
		t.lease = nil
		lf.values.dropResults(cl, d)
		lf.tasks.stopTimer(t)
		lf.reap(t)
		return
	}
	if lf.cfg.Transitions {
		lf.reportRun(t, d)
	}
	t.lease = nil
	if d.Err != nil {
		lf.attemptFailed(cl, t, l, d)
	} else {
		lf.succeed(cl, t, l, d)
	}
	if l != nil && l.actor != nil {
		lf.foreign.reported(l.actor)
	}
}

// laneMoved follows up on a task that left a lease's lane.
func (ls *leases) laneMoved(l *leaseRec) {
	l.slow = false
	if l.actor != nil {
		ls.up.touchActor(l.actor)
		return
	}
	ls.startHead(l)
	if l.lane.Len() == 0 {
		ls.touchLease(l)
	}
	if l.state == lease.Blocked || l.state == lease.Resuming {
		ls.moveLease(l, lease.Close) // its task ended without going on: the scheduler counts its CPU as given back
	}
	ls.relist(l)
	if l.class != nil {
		ls.touch(l.class)
	}
}

// reportRun tells telemetry of the run that has ended.
func (lf *life) reportRun(t *taskRec, d *wire.Done) {
	ch := Transition{Spec: t.spec, State: task.Running, Attempt: t.start, At: lf.now, Times: &d.Times}
	if d.Times.Started != 0 {
		ch.At = d.Times.Started
	}
	if l := t.lease; l != nil {
		ch.Lease, ch.Worker = l.id, l.worker.id
	}
	lf.changes = append(lf.changes, ch)
}

// succeed accepts an attempt's results.
func (lf *life) succeed(cl *clientRec, t *taskRec, l *leaseRec, d *wire.Done) {
	if t.x != nil && (t.x.rerunRequested || t.x.restartRequested) {
		lf.values.dropResults(cl, d)
		lf.rerunAfterEnd(t)
		return
	}
	if t.nret == wire.Streaming {
		if len(d.Results) > 0 {
			lf.values.dropResults(cl, d)
			lf.fail(t, errs.New(errs.CodeReturnMismatch, "%s is a stream and gave %d results", t.name(), len(d.Results)))
			return
		}
		if err := lf.streams.endStream(t, d.Items); err != nil {
			lf.fail(t, err)
			return
		}
		if i := t.x.stream.missing(); i >= 0 {
			lf.lostResult(cl, t, d, i)
			return
		}
		lf.finish(cl, t, d)
		return
	}
	if t.isCreation() {
		lf.actors.created(cl, t, l, d)
		return
	}
	if len(d.Results) != int(t.nret) {
		lf.values.dropResults(cl, d)
		lf.fail(t, errs.New(errs.CodeReturnMismatch, "%s gave %d results where its options say %d", t.name(), len(d.Results), t.nret))
		return
	}
	if i := unsealed(t, d); i >= 0 {
		lf.lostResult(cl, t, d, i)
		return
	}
	lf.finish(cl, t, d)
}

// unsealed gives the first return that is said to be stored and is not: its worker died
// before the store had sealed it; -1: none.
func unsealed(t *taskRec, d *wire.Done) int {
	for i := range d.Results {
		if d.Results[i].Kind == wire.ResultStored && t.ret(uint32(i)).state == object.Pending {
			return i
		}
	}
	return -1
}

// lostResult lets a task run again that has ended and of which the store has lost a return.
func (lf *life) lostResult(cl *clientRec, t *taskRec, d *wire.Done, i int) {
	lf.values.dropResults(cl, d)
	lf.toStoreAt(lf.nodeOf(cl), objectstore.Free{IDs: []ids.ObjectID{d.Task.Return(i)}}) // whatever it has: the next attempt is to make it
	charge := lf.charge
	if t.nret == wire.Streaming {
		charge = lf.chargeLoss
	}
	if charge(t) {
		lf.stats.Lost++
		lf.rerunAfterEnd(t)
		return
	}
	lf.fail(t, errs.New(errs.CodeObjectLost, "return %d of %s was lost by the store as it was made, and no retry is left", i, t.name()))
}

// finish makes the results the task's. The log has them before anybody sees them.
func (lf *life) finish(cl *clientRec, t *taskRec, d *wire.Done) {
	lf.journal.logDone(t, d)
	lf.noteAdopted(t)
	lf.tasks.move(t, task.Finish)
	if !t.isCounted() {
		lf.stats.Finished++
	}
	for i := range d.Results {
		lf.values.accepted(cl, t.ret(uint32(i)), d, i)
	}
	lf.promises.breakPromises(t, nil)
	lf.afterEnd(t)
}

// findTaskOfDone finds the task of a Done that came while leases are not known yet.
func (lf *life) findTaskOfDone(d *wire.Done) *taskRec {
	t := lf.tasks.task(d.Task)
	if t == nil || !t.waits() || d.Err != nil && d.Err.Code == errs.CodeCancelled && t.flags&taskCancelled == 0 {
		return nil // of an attempt that was given up
	}
	t.start = max(t.start, d.Attempt)
	lf.reach(t)
	return t
}

// waits tells whether a rebuilt core has a task that no worker has, as far as it knows.
func (t *taskRec) waits() bool {
	return !t.state.Terminal() && t.lease == nil && t.flags&taskWaitsName == 0
}
