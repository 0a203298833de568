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

// charge takes one retry, and is false if none is left.
func (c *Core) charge(t *taskRec) bool {
	return c.chargeTo(t, &t.tries, retries(t))
}

// chargeError takes one retry for an error of the task's own.
func (c *Core) chargeError(t *taskRec) bool {
	n := t.options().ExceptionRetries
	if n == 0 || t.isCall() {
		return c.charge(t)
	}
	return c.chargeTo(t, &t.ext().errors, n)
}

// chargeTo counts one retry of at most n, or of any number where n is -1.
func (c *Core) chargeTo(t *taskRec, count *uint32, n int32) bool {
	if n >= 0 && int64(*count) >= int64(n) {
		return false
	}
	*count++
	c.stats.Retried++
	c.logRetry(t)
	return true
}

// attemptFailed is a Done with an error.
func (c *Core) attemptFailed(t *taskRec, l *leaseRec, d *wire.Done) {
	c.dropResults(d)
	t.ext().err = d.Err
	switch {
	case t.flags&taskCancelled != 0:
		c.end(t, task.Cancel, c.cancelled(t))
	case t.isCall() && d.Err.Code == errs.CodeActorUnavailable:
		if a := t.actor; l != nil && a.rec == nil && a.lease == l { // it was stopped there; its owner says what becomes of it
			c.foreignMoved(a, d.Err)
		}
		c.callLost(t.actor, t, d.Err)
	case t.x.anew, c.again(t, d):
		c.runAgain(t)
	default:
		if t.isCreation() && l != nil {
			c.closeLease(l) // what the constructor left behind goes with the process' slot
		}
		c.fail(t, d.Err)
	}
}

// again tells whether a task is to be tried again after an error, and charges it then.
func (c *Core) again(t *taskRec, d *wire.Done) bool {
	switch d.Err.Code {
	case errs.CodeCancelled: // and not by us: the worker drains, or a lost core had given the attempt up
		return c.charge(t)
	case errs.CodeTaskFailed, errs.CodePanic, errs.CodeUser, errs.CodeUnknown: // the application's
		return t.options().RetryExceptions && !d.Final && !t.isCreation() && c.chargeError(t)
	}
	return false
}

// crashed is an attempt that ended with its process, and is charged.
func (c *Core) crashed(t *taskRec, err *errs.Error) {
	if t.isCreation() {
		c.creationLost(t, err)
		return
	}
	if c.charge(t) {
		if wait := c.backoff(t.id(), int(t.tries)); wait > 0 {
			c.later(t, wait)
		} else {
			c.requeue(t, true)
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
	c.fail(t, out)
}

// outOfMemory runs a task again that was killed for memory: later, alone, and with room for
// the peak that was seen when it last ran alone. That charges nothing: the node was short.
func (c *Core) outOfMemory(t *taskRec, cl *clientRec, alone bool, err *errs.Error) {
	x := t.ext()
	x.ooms = min(x.ooms+1, 250)
	if t.flags&taskSolo != 0 || alone {
		x.peak = max(x.peak, cl.peak)
	}
	if t.isCreation() {
		c.creationLost(t, err)
		return
	}
	c.isolate(t, roundPeak(x.peak))
	delay := int64(c.cfg.OOMBackoff) << min(x.ooms-1, 20)
	delay = min(delay, int64(c.cfg.MaxOOMBackoff))
	c.move(t, task.Delay)
	c.setTimer(t, c.now+delay, timerBackoff)
}

const peakStep = 64 << 20 // bytes: peaks are rounded, so that classes stay few

func roundPeak(b uint64) uint64 { return (b + peakStep - 1) / peakStep * peakStep }

func (c *Core) backoffOver(t *taskRec) {
	t.x.timer = nil
	if d := t.deadlineAt(); d != 0 {
		c.setTimer(t, d, timerDeadline) // a deadline in the past fires at once
	}
	if t.state == task.Backoff {
		c.requeue(t, true)
	}
}
