package owner

import (
	"mobula/internal/errs"
	"mobula/raylet/owner/task"
	"mobula/wire"
)

// retries gives how often a task may be charged with a failed attempt and run again; -1 is
// without bound. Of an actor's call the actor says it, of a creation the restarts.
func retries(t *taskRec) int32 {
	switch {
	case t.isCreation():
		return t.actor.opts.MaxRestarts
	case t.isCall():
		if t.actor.opts == nil {
			return 0
		}
		return t.actor.opts.MaxTaskRetries
	}
	return t.options().MaxRetries
}

func (t *taskRec) options() *wire.TaskOptions {
	if t.spec != nil {
		return t.spec.Opts
	}
	return t.class.opts
}

// retriable tells whether a task may run again at all.
func retriable(t *taskRec) bool { return retries(t) != 0 }

// retryLeft tells whether a retry is left to make what the task has made again.
func retryLeft(t *taskRec) bool {
	n := retries(t)
	return n < 0 || int64(t.tries) < int64(n) || n > 0 && t.nret == wire.Streaming && t.x.stream.owed
}

// charge takes one retry, and is false if none is left.
func (lf *life) charge(t *taskRec) bool {
	return lf.chargeTo(t, &t.tries, retries(t))
}

// chargeError takes one retry for an error of the task's own.
func (lf *life) chargeError(t *taskRec) bool {
	n := t.options().ExceptionRetries
	if n == 0 || t.isCall() {
		return lf.charge(t)
	}
	return lf.chargeTo(t, &t.ext().errors, n)
}

// chargeTo counts one retry of at most n, or of any number where n is -1.
func (lf *life) chargeTo(t *taskRec, count *uint32, n int32) bool {
	if n >= 0 && int64(*count) >= int64(n) {
		return false
	}
	if *count++; n >= 0 && int64(*count) == int64(n) {
		lf.objects.keptValues.losses++ // it makes nothing again from now on
	}
	lf.stats.Retried++
	lf.journal.logRetry(t)
	return true
}

// attemptFailed is a Done with an error.
func (lf *life) attemptFailed(cl *clientRec, t *taskRec, l *leaseRec, d *wire.Done) {
	lf.values.dropResults(cl, d)
	t.ext().err = d.Err
	switch {
	case t.flags&taskCancelled != 0:
		lf.end(t, task.Cancel, t.cancelledError())
	case t.isCall() && (d.Broke || byPanic(d.Err)):
		lf.brokenCall(t, l, d)
	case t.isCall() && d.Err.Code == errs.CodeActorUnavailable:
		if l != nil && t.actor.rec == nil {
			lf.foreign.awaitWord(l, d.Err) // it was stopped there
			as := heldBegun
			if d.Times.Started == 0 {
				as = heldUnbegun
			}
			l.hold(t, as)
			return
		}
		lf.calls.callLost(t.actor, t, d.Err)
	case t.x.restartRequested, lf.again(t, d):
		lf.rerunAfterEnd(t)
	default:
		if t.isCreation() && l != nil {
			lf.leases.closeLease(l) // what the constructor left behind goes with the process' slot
		}
		lf.fail(t, d.Err)
	}
}

// again tells whether a task is to be tried again after an error, and charges it then.
func (lf *life) again(t *taskRec, d *wire.Done) bool {
	switch d.Err.Code {
	case errs.CodeCancelled: // and not by us: the worker drains, or a lost core had given the attempt up
		return lf.charge(t)
	case errs.CodeTaskFailed, errs.CodePanic, errs.CodeUser, errs.CodeUnknown: // the application's
		return t.options().RetryExceptions && !d.Final && !t.isCreation() && lf.chargeError(t)
	}
	return false
}

// crashed is an attempt that ended with its process, and is charged.
func (lf *life) crashed(t *taskRec, err *errs.Error) {
	if t.isCreation() {
		lf.actors.creationLost(t, err)
		return
	}
	if lf.charge(t) {
		if wait := lf.tasks.backoff(t.id(), int(t.tries)); wait > 0 {
			lf.tasks.runAfter(t, wait)
		} else {
			lf.requeue(t, true)
		}
		return
	}
	out := &errs.Error{
		Code: errs.CodeWorkerCrashed, Name: t.name(), Task: t.id().String(), Cause: []*errs.Error{err},
	}
	if err.Code == errs.CodeOutOfMemory {
		out.Code = err.Code
	}
	out.Msg = t.name() + ": the process of its attempt " + utoa(t.start) + " died, and of " + itoa(retries(t)) + " retries none is left: " + err.Error()
	lf.fail(t, out)
}

// outOfMemory runs a task again that was killed for memory: later, alone, and with room for
// the peak that was seen when it last ran alone. That charges nothing: the node was short.
func (lf *life) outOfMemory(t *taskRec, cl *clientRec, alone bool, err *errs.Error) {
	x := t.ext()
	x.ooms = min(x.ooms+1, 250)
	if t.flags&taskIsolated != 0 || alone {
		x.peak = max(x.peak, cl.peak)
	}
	if t.isCreation() {
		lf.actors.creationLost(t, err)
		return
	}
	lf.isolate(t, roundPeak(x.peak))
	delay := int64(lf.cfg.OOMBackoff) << min(x.ooms-1, 20)
	delay = min(delay, int64(lf.cfg.MaxOOMBackoff))
	lf.tasks.move(t, task.Delay)
	lf.tasks.setTimer(t, lf.now+delay, timerBackoff)
}

const peakStep = 64 << 20 // bytes: peaks are rounded, so that classes stay few

func roundPeak(b uint64) uint64 { return (b + peakStep - 1) / peakStep * peakStep }

func (lf *life) backoffOver(t *taskRec) {
	t.x.timer = nil
	if d := t.deadlineAt(); d != 0 {
		lf.tasks.setTimer(t, d, timerDeadline) // a deadline in the past fires at once
	}
	if t.state == task.Backoff {
		lf.requeue(t, true)
	}
}

// rerunAfterEnd has a task run once more whose attempt has ended.
func (lf *life) rerunAfterEnd(t *taskRec) {
	if t.x != nil {
		t.x.rerunRequested = false
	}
	if t.isCall() {
		lf.calls.callAgain(t)
	} else {
		lf.requeue(t, false)
	}
}

// chargeLoss takes a retry for an item that is lost, or none where an attempt before the last one had made it.
func (lf *life) chargeLoss(t *taskRec) bool {
	s := t.x.stream
	if s.owed && retriable(t) {
		s.owed = false
		lf.stats.Retried++
		lf.journal.logRetry(t)
		return true
	}
	return lf.charge(t)
}

// isolate lets a task run in a process of its own from now on.
func (lf *life) isolate(t *taskRec, memory uint64) {
	lf.moveToClass(t, lf.leases.isolatedClass(t.class, memory))
}

// inProcess lets an actor be made in the process of a name from now on.
func (lf *life) inProcess(t *taskRec, process string) {
	opts := *t.class.opts
	opts.Process = process
	lf.moveToClass(t, lf.leases.classByKey(t.class.kind, &opts))
}

// moveToClass lets a task run in leases of another class than its own from now on.
func (lf *life) moveToClass(t *taskRec, k *classRec) {
	was := t.in
	t.flags |= taskIsolated
	t.ext().isolatedClass = k
	lf.stats.Isolated++
	if t.state == task.PendingNode && was != nil && was != &k.ready {
		t.unlist()
		lf.leases.touch(t.class)
		t.flags |= taskFront
		lf.enqueue(t)
	}
}
