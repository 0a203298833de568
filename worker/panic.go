package worker

import (
	"runtime"

	"mobula/internal/errs"
	"mobula/wire"
)

// A panic in a call may have left the actor's state half changed, so it ends the instance, unless the actor resumes: the instance takes no
// more calls, those that run are given up, those that have not begun go back to their owner, and the close hook is not called, as after a
// kill. The process lives on. The actor's owner is told last: from then on it may have another instance made, here or elsewhere.

// breaks notes that a call has panicked. It tells whether that ends the instance, and whether this call is the first to do so: who has that
// call gives the instance up.
func (a *actor) breaks(err *errs.Error) (broke, first bool) {
	if a.onPanic == wire.PanicResumes {
		return false, false
	}
	return true, a.brokenBy(err)
}

// brokenBy notes what has ended the instance. It tells whether this was the first to do so.
func (a *actor) brokenBy(err *errs.Error) bool {
	why := errs.New(errs.CodeActorUnavailable, "the instance of actor %v (%s) has ended: %v", a.id, a.name, err)
	a.killed.Store(true)                              // before the call is over: who waits for that may be about to call the close hook
	why.Cause = []*errs.Error{{Code: errs.CodePanic}} // by which the owner of a call knows why; the rest it hears from the actor's
	return a.broken.CompareAndSwap(nil, why)
}

// giveUp ends the instance of an actor that has panicked with err, and reports that. The references in err keep their objects until it is
// reported, if keep is kept.
func (e *Executor) giveUp(a *actor, err *errs.Error, keep any) {
	a.end()
	e.log.Error("a panic has ended the instance of an actor", "actor", a.id, "type", a.name, "err", err, "stack", err.Stack)
	why := a.broken.Load()
	var all []wire.Msg
	reports, keeps := make([][]wire.Msg, len(a.lanes)), make([][]any, len(a.lanes))
	var running []*call
	for i, l := range a.lanes {
		var calls []*call
		reports[i], keeps[i], calls = l.giveUp(why)
		all, running = append(all, reports[i]...), append(running, calls...)
	}
	e.send(append(all, &wire.ActorStopped{Actor: a.id, Lease: a.lease, Err: err})...)
	runtime.KeepAlive(keep)
	runtime.KeepAlive(keeps)
	for i, l := range a.lanes {
		l.handedOver(reports[i])
	}
	e.forget(a) // not before: what it has is among the Holdings until it is reported
	e.finished(len(all))
	for _, cl := range running {
		cl.ctx.cancel(why)
	}
}

// giveUp ends the lane and gives what is to be reported: what was not sent yet, running calls that are given up, and those that have not
// begun, for which the time that they started at is not set. It gives what must be kept until that is sent, and the calls that still run.
func (l *lane) giveUp(why *errs.Error) (reports []wire.Msg, keep []any, running []*call) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	l.wakeAllLocked()
	l.awaitSentLocked() // what the instance has done is told before that it has ended
	running = append(running, l.calls...)
	for _, cl := range running {
		l.abandonLocked(cl, why)
		l.replaceLocked(cl)
	}
	reports, keep = l.done, l.keep
	l.done, l.keep = nil, nil
	now := l.e.cfg.Now()
	for _, it := range l.queue[l.head:] {
		reports = append(reports, &wire.Done{Task: it.t.Spec.ID, Attempt: it.t.Attempt, Lease: it.lease, Err: why,
			Times: wire.Times{Received: it.received, Ended: now}})
	}
	l.queue, l.head = nil, 0
	if l.quiet != nil {
		close(l.quiet)
		l.quiet = nil
	}
	l.sending = append(l.sending, reports...)
	return reports, keep, running
}

// handedOver notes that reports were sent.
func (l *lane) handedOver(reports []wire.Msg) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.handedOverLocked(reports)
}
