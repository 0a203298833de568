package owner

import (
	"mobula/internal/errs"
	"mobula/raylet/owner/actor"
	"mobula/wire"
)

// A panic in a call ends the instance of its actor, and its process lives on. To the actor that is as if its process had died and it were to
// blame: it restarts where it has a restart left, unless it was created to stop or to escalate. To its calls it is not: the worker has told of
// each whether it had begun. The one that panicked fails with its panic, those that ran beside it fail as those of an actor that
// restarts, each unless MaxTaskRetries lets it be made again; and those that had not begun wait for the next instance, as do those that are made
// meanwhile. Until the actor's owner, here or in another job, has said what becomes of the actor, they stay on the lease.

// actorBroke is the end of an instance by a panic of one of its calls.
func (as *actors) actorBroke(cl *clientRec, m *wire.ActorStopped) {
	a := as.byID[m.Actor]
	if a == nil || a.rec == nil || !as.isInstance(a, cl, m) {
		return // its end was known before
	}
	var calls []*taskRec
	if a.lease != nil {
		calls = as.leaveInstance(a)
	}
	for _, t := range calls {
		if x := t.ext(); x.held == notHeld { // it was on its way
			x.held = heldUnbegun
		}
	}
	cause := m.Err
	if cause == nil {
		cause = &errs.Error{Code: errs.CodePanic}
	}
	err := panicked(a, cause)
	switch {
	case a.state == actor.Stopping:
		as.die(a, a.closedWith(cause))
	case a.opts.OnPanic == wire.PanicEscalates:
		died := as.diedOfPanic(a, " and escalates", cause)
		as.tellParent(a, died)
		as.die(a, died)
	case a.opts.OnPanic == wire.PanicStops:
		as.failForGood(a, as.diedOfPanic(a, " and is created to stop then", cause))
	case as.useRestart(a):
		as.restart(a, calls, err, as.restartDelay(a))
		return
	default:
		as.failForGood(a, as.diedOfPanic(a, " after "+itoa(a.restarts)+" of "+itoa(a.opts.MaxRestarts)+" restarts", cause))
	}
	as.calls.returnCalls(a, calls, err)
}

// isInstance tells whether a worker speaks of an actor's present instance. A core that was rebuilt may not have adopted it: the worker had it
// no more when it said what it has.
func (as *actors) isInstance(a *actorRec, cl *clientRec, m *wire.ActorStopped) bool {
	switch {
	case a.state != actor.Alive && a.state != actor.Stopping:
		return false
	case a.lease != nil:
		return a.lease.id == m.Lease && a.lease.worker == cl
	}
	return as.recovering && a.logged != nil && a.logged.Lease == m.Lease && a.logged.Worker == cl.id
}

// panicked is why an actor restarts of which a call has panicked.
func panicked(a *actorRec, err *errs.Error) *errs.Error {
	e := &errs.Error{Code: errs.CodeActorUnavailable, Task: a.id.String(), Cause: []*errs.Error{err}}
	e.Msg = "a call of it panicked: " + err.Error()
	if a.opts != nil {
		e.Name = a.opts.Func
	}
	return e
}

func (as *actors) diedOfPanic(a *actorRec, how string, err *errs.Error) *errs.Error {
	return &errs.Error{Code: errs.CodeActorDied, Name: a.opts.Func, Task: a.id.String(), Cause: []*errs.Error{err},
		Msg: "actor " + a.id.String() + " (" + a.opts.Func + ") panicked" + how + ": " + err.Error()}
}

// byPanic tells whether an actor's instance has ended by a panic, from what its worker or its owner says of that.
func byPanic(err *errs.Error) bool {
	return err != nil && err.Code == errs.CodeActorUnavailable && hasPanic(err.Cause)
}

func hasPanic(causes []*errs.Error) bool {
	for _, c := range causes {
		if c.Code == errs.CodePanic || hasPanic(c.Cause) {
			return true
		}
	}
	return false
}

// keepsCalls tells whether the calls of an actor that restarts wait for its next instance.
func (a *actorRec) keepsCalls() bool {
	return a.opts == nil || a.opts.MaxTaskRetries != 0 || byPanic(a.cause)
}

// heldAs says what the worker has told of a call that waits, on its lease, for the word of what becomes of its actor.
type heldAs uint8

const (
	notHeld     heldAs = iota
	heldBegun          // it ran
	heldUnbegun        // it did not
	heldCulprit        // it panicked, and is charged already
)

// brokenCall is the end of an attempt at a call by its own panic, or by that of another call of the instance.
func (lf *life) brokenCall(t *taskRec, l *leaseRec, d *wire.Done) {
	err, as := d.Err, heldBegun
	switch {
	case d.Broke:
		err, as = panicked(t.actor, d.Err), heldCulprit
	case d.Times.Started == 0:
		as = heldUnbegun
	}
	if l != nil && t.actor.rec == nil {
		lf.foreign.awaitWord(l, err)
	}
	switch {
	case d.Broke && !lf.charge(t):
		lf.fail(t, d.Err)
	case l != nil:
		l.hold(t, as)
	default:
		lf.calls.callLost(t.actor, t, err)
	}
}

// keepsPlace tells whether a call is made again whose attempt has not begun, or has ended by a panic, as a core that is rebuilt is told: it
// waits in its place already, among those that its worker had and all others.
func (lf *life) keepsPlace(cl *clientRec, d *wire.Done) bool {
	t := lf.tasks.task(d.Task)
	if t == nil || !t.waits() || !t.isCall() || t.flags&taskCancelled != 0 || d.Err == nil {
		return false
	}
	switch {
	case d.Err.Code == errs.CodeActorUnavailable && d.Times.Started == 0:
	case !d.Broke && !byPanic(d.Err), !lf.charge(t):
		return false
	}
	t.start = max(t.start, d.Attempt)
	lf.values.dropResults(cl, d)
	return true
}

// hold keeps a call on the lease, behind those that are held already: the others were pushed later.
func (l *leaseRec) hold(t *taskRec, as heldAs) {
	t.lease = l
	t.ext().held = as
	l.lane.Insert(min(l.held, l.lane.Len()), t)
	l.held++
}
