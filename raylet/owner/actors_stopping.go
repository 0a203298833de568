package owner

import (
	"mobula/internal/errs"
	"mobula/raylet/owner/actor"
	"mobula/wire"
)

// A graceful end of an actor. From the moment it is asked for, the actor takes no more calls; those made before run. Then its
// worker is told to call the actor's close hook, and the actor is dead when that has returned: until then it keeps its
// lease, its name and its place among those that keep the job alive. Where that takes longer than StopGrace, and where its
// process dies meanwhile, it is dead at once.

// stopActor asks an actor to end after the calls that it has.
func (as *actors) stopActor(a *actorRec, why *errs.Error) {
	if a.ended() || a.stop != nil {
		return
	}
	a.stop = why
	as.setCause(a, why, a.hurt)
	as.journal.logActor(a)
	as.publish(a)
	as.calls.touchActor(a)
}

// maybeStop goes on with an actor that was asked to end, once it has no call.
func (as *actors) maybeStop(a *actorRec) {
	switch {
	case a.pending > 0 || as.recovering || a.ended() || a.state == actor.Stopping:
	case a.state == actor.Alive:
		as.beginClose(a, true)
	default: // it has no instance
		as.die(a, a.stop)
	}
}

// endActor ends an actor gracefully and at once: its calls fail, its close hook is called.
func (as *actors) endActor(a *actorRec, why *errs.Error) {
	if a.ended() || a.state == actor.Stopping {
		return
	}
	if a.state != actor.Alive {
		as.die(a, why)
		return
	}
	a.stop = why
	as.setCause(a, why, a.hurt)
	as.leases.unpushFetching(a.lease)
	calls := a.lease.lane.drain()
	a.lease.out = nil
	as.beginClose(a, false)
	as.calls.returnCalls(a, calls, why)
	as.calls.failQueued(a)
}

// beginClose has the worker close the actor; with drain, when the calls of other jobs that it was sent have run too.
func (as *actors) beginClose(a *actorRec, drain bool) {
	as.moveActor(a, actor.Stop)
	as.journal.logActor(a)
	as.publish(a)
	as.askClose(a, drain)
}

func (as *actors) askClose(a *actorRec, drain bool) {
	as.leases.toLease(a.lease, &wire.StopActor{Actor: a.id, Close: true, Drain: drain})
	if a.closing == nil {
		a.closing = as.timers.add(as.now+int64(as.cfg.StopGrace), timer{kind: timerStop, actor: a})
	}
}

// actorStopped is the end of a close hook.
func (as *actors) actorStopped(cl *clientRec, m *wire.ActorStopped) {
	a := as.byID[m.Actor]
	if a == nil || a.state != actor.Stopping || a.lease == nil || a.lease.worker != cl {
		return
	}
	why := a.closedWith(m.Err)
	calls := as.leaveInstance(a) // those left have ended here, and their attempts had not
	as.die(a, why)
	as.calls.returnCalls(a, calls, why)
}

// closedWith is the reason of a graceful end, with what the close hook said.
func (a *actorRec) closedWith(err *errs.Error) *errs.Error {
	if err == nil {
		return a.stop
	}
	return &errs.Error{Code: errs.CodeActorDied, Name: a.stop.Name, Task: a.stop.Task, Cause: []*errs.Error{err},
		Msg: a.stop.Msg + "; its close failed: " + err.Error()}
}

// stopOver gives up on a close hook that does not return.
func (as *actors) stopOver(a *actorRec) {
	a.closing = nil
	if !a.ended() {
		as.die(a, a.closedWith(errs.New(errs.CodeDeadline, "it had not returned %v after it was asked for", as.cfg.StopGrace)))
	}
}

// stopTimerOf ends the wait for a close hook.
func (as *actors) stopTimerOf(a *actorRec) {
	if a.closing != nil {
		as.timers.remove(a.closing)
		a.closing = nil
	}
}
