package owner

import (
	"time"

	"mobula/internal/errs"
	"mobula/raylet/owner/actor"
	"mobula/raylet/owner/task"
)

// restartDelay is the wait of an actor whose process died before it is made again. One that lived a while, and longer than it
// waited twice, begins anew.
func (as *actors) restartDelay(a *actorRec) time.Duration {
	waited := as.tasks.backoff(a.rec.id(), a.streak)
	if a.upAt != 0 && as.now-a.upAt >= int64(max(as.cfg.RestartReset, 2*waited)) {
		a.streak = 0
	}
	a.streak++
	a.upAt = 0
	return as.tasks.backoff(a.rec.id(), a.streak)
}

// useRestart takes one restart, and is false if none is left.
func (as *actors) useRestart(a *actorRec) bool {
	if a.opts.MaxRestarts >= 0 && a.restarts >= a.opts.MaxRestarts {
		return false
	}
	a.restarts++
	a.uncharged = false
	as.stats.ActorRestarts++
	return true
}

// restart runs an actor's creation again, at once or after a wait.
func (as *actors) restart(a *actorRec, calls []*taskRec, err *errs.Error, wait time.Duration) {
	as.setCause(a, err, nil)
	as.moveActor(a, actor.Restart)
	as.journal.logActor(a)
	as.publish(a)
	t := a.rec
	if wait > 0 {
		t.ext().err = err
		as.tasks.runAfter(t, wait)
	} else {
		as.tasks.move(t, task.Rerun)
		as.tasks.workQ = append(as.tasks.workQ, t)
	}
	as.calls.returnCalls(a, calls, err)
	as.calls.failUnavailable(a)
	as.objects.holdArgs(t)
	if t.flags&taskCounted == 0 {
		t.flags |= taskCounted
		t.class = as.leases.currentClass(t.class)
		t.class.live++
	}
}

// creationLost is a creation whose process died: that uses a restart.
func (as *actors) creationLost(t *taskRec, err *errs.Error) {
	a := t.actor
	if !as.useRestart(a) {
		t.ext().err = err
		as.up.fail(t, as.actorDied(a, err))
		return
	}
	as.creationAgain(t, err)
}

// creationAgain runs a creation again whose process died, after its back-off.
func (as *actors) creationAgain(t *taskRec, err *errs.Error) {
	a := t.actor
	as.setCause(a, err, nil)
	as.moveActor(a, actor.Restart)
	as.journal.logActor(a)
	if wait := as.restartDelay(a); wait > 0 && t.flags&taskCancelled == 0 {
		t.ext().err = err
		as.tasks.runAfter(t, wait)
		return
	}
	as.up.requeue(t, true)
}

// actorLost is the death of an actor's process with the calls that were on it. It restarts if it is not charged, or
// has a restart left.
func (as *actors) actorLost(a *actorRec, calls []*taskRec, charged bool, err *errs.Error) {
	a.lease = nil
	if a.state == actor.Stopping {
		as.die(a, a.closedWith(err))
		as.calls.returnCalls(a, calls, err)
		return
	}
	if charged && !as.useRestart(a) {
		as.failForGood(a, as.actorDied(a, err))
		as.calls.returnCalls(a, calls, err)
		return
	}
	if !charged {
		as.reset(a)
	}
	as.restart(a, calls, err, as.restartDelay(a))
}

// reset counts a restart that is not charged.
func (as *actors) reset(a *actorRec) {
	a.resets++
	a.uncharged = true
	as.stats.ActorResets++
}

// chargeReset charges the last restart after all, and is false if none was left.
func (as *actors) chargeReset(a *actorRec) bool {
	a.resets--
	as.stats.ActorResets--
	return as.useRestart(a)
}
