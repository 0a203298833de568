package owner

import (
	"mobula/internal/errs"
	"mobula/raylet/owner/actor"
	"mobula/raylet/owner/lease"
	"mobula/wire"
)

// An actor of another job may leave its worker, and that is known here before its owner has told: its worker's connection has ended, or the worker has
// refused a call. Only its owner knows whether the actor restarts or is dead, and its calls fail with the one error or the other.

// actorAt is where another job's actor is now.
func (fo *foreign) actorAt(m ActorAt) {
	a := fo.actors.byID[m.Actor]
	if a == nil || a.rec != nil || a.ended() {
		return
	}
	if m.Opts != nil {
		a.opts = m.Opts
	}
	a.restarts = m.Restarts
	if a.opts == nil {
		a.opts = &wire.TaskOptions{}
	}
	a.unreached = nil
	if fo.awaitReports(a, m) {
		return
	}
	a.said = nil
	if m.State == actor.Dead {
		fo.dead(a, m.Err)
		return
	}
	if m.State != actor.Alive || a.lease == nil || a.lease.id != m.Lease {
		fo.moved(a, m.Err)
	}
	if a.doubt {
		fo.failUncertainCalls(a, m)
	}
	switch m.State {
	case actor.Alive:
		if a.state != actor.Alive {
			fo.cameUp(a, m)
		}
	case actor.Locating:
		fo.notFound(a, m.Err)
	default:
		if a.state == actor.Alive {
			fo.actors.moveActor(a, actor.Restart)
			fo.calls.failUnavailable(a)
		}
	}
}

// notFound fails the calls of another job's actor that cannot be reached, which is no word on whether it lives: those that wait, and those that are to be made
// again. The next call asks again.
func (fo *foreign) notFound(a *actorRec, err *errs.Error) {
	a.unreached = err
	fo.calls.failUnreached(a)
	for _, w := range a.watchers {
		fo.toClient(w.client, &wire.ActorNews{Actor: w.as, State: wire.ActorRestarting, Err: err})
	}
	a.watchers = nil
	if a.pending == 0 {
		delete(fo.actors.byID, a.id)
	}
}

// failUncertainCalls fails the calls that a lost core may have pushed and that must not run twice. A worker that has said what it has
// would have named them.
func (fo *foreign) failUncertainCalls(a *actorRec, m ActorAt) {
	a.doubt = false
	if cl := fo.clients.client(m.Worker); m.State == actor.Alive && cl != nil && cl.reported {
		return
	}
	if a.opts.MaxTaskRetries == 0 { // also of an actor that keeps what waits
		fo.calls.failWaiting(a)
	}
}

func (fo *foreign) cameUp(a *actorRec, m ActorAt) {
	cl := fo.clients.client(m.Worker)
	if cl == nil || cl.gone {
		return // told again when it has moved
	}
	l := &leaseRec{id: m.Lease, worker: cl, actor: a, state: lease.Actor}
	fo.leases.addLease(l)
	a.lease = l
	fo.actors.moveActor(a, actor.Up)
	fo.calls.touchActor(a)
}

// moved deals with the calls on the place where another job's actor was.
func (fo *foreign) moved(a *actorRec, err *errs.Error) {
	if a.lease == nil {
		return
	}
	if err == nil {
		err = errs.New(errs.CodeActorUnavailable, "actor %v has moved", a.id)
	}
	calls := fo.leave(a)
	fo.actors.setCause(a, err, nil)
	if a.state == actor.Alive {
		fo.actors.moveActor(a, actor.Restart)
	}
	fo.calls.returnCalls(a, calls, err)
	fo.calls.failUnavailable(a)
	if m := a.said; m != nil {
		a.said = nil
		fo.actorAt(*m)
	}
}

// awaitReports puts an owner's word off that a call of the instance which is known here has panicked, until the worker has told of each call that
// was pushed there whether it had begun: those on their way it refuses. That comes soon, and is waited for no longer than a word is.
func (fo *foreign) awaitReports(a *actorRec, m ActorAt) bool {
	l := a.lease
	if l == nil || l.worker.gone || m.State == actor.Dead || m.Lease == l.id && m.State == actor.Alive || !byPanic(m.Err) || !l.unreported() {
		return false
	}
	fo.awaitWord(l, m.Err)
	a.said = &m
	return true
}

// unreported tells whether a call that was pushed to an actor may have begun, for all that is known.
func (l *leaseRec) unreported() bool {
	return l.lane.contains(func(t *taskRec) bool { return alive(t) && (t.x == nil || t.x.held == notHeld) })
}

// reported goes on with an owner's word that was put off, once nothing is to be reported any more.
func (fo *foreign) reported(a *actorRec) {
	if m := a.said; m != nil && a.lease != nil && !a.lease.unreported() {
		a.said = nil
		fo.actorAt(*m)
	}
}

// dead ends another job's actor, of which its owner says that it is dead.
func (fo *foreign) dead(a *actorRec, err *errs.Error) {
	if err == nil {
		err = errs.New(errs.CodeActorDied, "actor %v is dead", a.id)
	}
	calls := fo.leave(a)
	fo.actors.die(a, err)
	fo.calls.returnCalls(a, calls, err)
}

// leave gives the calls on the place where another job's actor was.
func (fo *foreign) leave(a *actorRec) []*taskRec {
	l := a.lease
	if l == nil {
		return nil
	}
	if l.state != lease.Lost {
		fo.tellCallsLost(l)
	}
	a.lease = nil
	calls := l.lane.drain()
	fo.leases.unpushFetching(l)
	l.out = nil
	fo.leases.endLease(l)
	return calls
}

// tellCallsLost tells the owner of another job's actor of calls that it does not know of.
func (fo *foreign) tellCallsLost(l *leaseRec) {
	if l.ranCalls() {
		fo.toDirectory(CallsLost{Actor: l.actor.id, Lease: l.id})
	}
}

// awaitWord lets the calls of an actor wait for its owner's next word, actorAt. If that does not come within SettleGrace they fail with err, as those of
// an actor that restarts.
func (fo *foreign) awaitWord(l *leaseRec, err *errs.Error) {
	if l.state == lease.Lost {
		return
	}
	fo.tellCallsLost(l)
	fo.leases.moveLease(l, lease.Lose)
	fo.actors.setCause(l.actor, err, nil)
	l.word = fo.timers.add(fo.now+int64(fo.cfg.SettleGrace), timer{kind: timerWord, lease: l})
}

// wordExpired goes on without the word of another job's owner.
func (fo *foreign) wordExpired(l *leaseRec) {
	l.word = nil
	fo.moved(l.actor, l.actor.cause)
}

// workerGone has the calls wait that other jobs' actors on a worker had: the scheduler tells only the lease's own job.
func (fo *foreign) workerGone(cl *clientRec) {
	for _, l := range cl.leases {
		fo.awaitWord(l, cl.deathCause())
	}
}
