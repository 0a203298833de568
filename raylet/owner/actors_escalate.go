package owner

import (
	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/raylet/owner/actor"
)

// The failure of an actor that escalates is one of its parent, the actor that has created it: that restarts as if its process had died
// and it were to blame, or it dies, which may escalate further. A failure is an end that nobody has asked for: a constructor that failed, or
// a panic or the death of its process without a restart left; where it is created to escalate a panic, any panic. The parent is in the log with the submission: the call that has created the child is soon
// forgotten.

// actorOf gives the actor of this job whose call or constructor a task is; zero: there is none.
func actorOf(t *taskRec) ids.ActorID {
	if t == nil || t.actor == nil || t.actor.rec == nil {
		return ids.ActorID{}
	}
	return t.actor.id
}

// failForGood is an actor's end by a failure.
func (as *actors) failForGood(a *actorRec, err *errs.Error) {
	if a.ended() {
		return
	}
	if a.opts.Escalate {
		as.tellParent(a, err)
	}
	as.die(a, err)
}

// tellParent makes a failure one of the parent's too, if there is one.
func (as *actors) tellParent(a *actorRec, err *errs.Error) {
	if parent := a.parent; parent != (ids.ActorID{}) {
		e := &errs.Error{Code: errs.CodeActorUnavailable, Name: a.opts.Func, Task: a.id.String(), Cause: reasons(err)}
		e.Msg = "its child " + a.id.String() + " (" + a.opts.Func + "), which escalates, failed: " + err.Error()
		as.escalated = append(as.escalated, escalation{to: parent, err: e})
	}
}

// reasons gives what a failed child's error is due to, without that it is an actor's death: its parent's restart is none.
func reasons(err *errs.Error) []*errs.Error {
	if err.Code != errs.CodeActorDied {
		return wrappedCause(err)
	}
	var out []*errs.Error
	for _, cause := range err.Cause {
		out = append(out, reasons(cause)...)
	}
	return out
}

// escalate charges the parents of those that have failed, and theirs.
func (as *actors) escalate() {
	for i := 0; i < len(as.escalated); i++ {
		e := as.escalated[i]
		if p := as.byID[e.to]; p != nil && p.rec != nil {
			as.childFailed(p, e.err)
		}
	}
	clear(as.escalated)
	as.escalated = as.escalated[:0]
}

// chargeParent charges an actor with the child that failed while its constructor ran.
func (as *actors) chargeParent(a *actorRec) {
	as.escalated = append(as.escalated, escalation{to: a.id, err: a.hurt})
	as.setCause(a, a.cause, nil)
}

// childFailed restarts an actor whose child has failed, if it has a restart left. One that restarts already
// is charged for that if it was not; one whose constructor runs fails when that has returned.
func (as *actors) childFailed(p *actorRec, err *errs.Error) {
	died := func() {
		e := &errs.Error{Code: errs.CodeActorDied, Name: p.opts.Func, Task: p.id.String(), Cause: err.Cause}
		e.Msg = "actor " + p.id.String() + " (" + p.opts.Func + ") has used " + itoa(p.restarts) + " of " + itoa(p.opts.MaxRestarts) + " restarts: " + err.Msg
		as.failForGood(p, e)
	}
	switch {
	case p.ended() || p.state == actor.Stopping:
	case p.state == actor.Alive:
		if as.useRestart(p) {
			as.restart(p, as.stopInstance(p, true), err, as.restartDelay(p))
		} else {
			died()
		}
	case p.rec.state.OnWorker():
		as.setCause(p, p.cause, err)
		as.journal.logActor(p)
	case p.uncharged:
		if as.chargeReset(p) {
			as.journal.logActor(p)
		} else {
			died()
		}
	}
}
