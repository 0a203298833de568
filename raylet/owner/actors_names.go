package owner

import (
	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/raylet/owner/actor"
	"mobula/raylet/owner/lease"
	"mobula/raylet/owner/task"
	"mobula/wire"
)

// Names, and actors of other jobs. The directory is asked, never waited for.

// restate tells a directory that has lost what it knew what this owner had told it and asked it.
func (as *actors) restate() {
	for _, id := range as.actorIDs() {
		switch a := as.byID[id]; {
		case a.ended():
		case a.rec == nil:
			as.toDirectory(LocateActor{Actor: a.id})
		case a.state == actor.Claiming:
			as.claimName(a)
		default:
			as.publish(a)
		}
	}
}

// claimName asks for an actor's name; nameClaimed has the answer. The node's directory passes it on (gcs/directory), and the control plane decides, by
// who writes the row first (gcs).
func (as *actors) claimName(a *actorRec) { as.toDirectory(ClaimName{Actor: a.id, Opts: a.opts}) }

// locateRequested answers another job that asks for an actor of this one which the directory does not know:
// one that will not come.
func (as *actors) locateRequested(id ids.ActorID) {
	at := ActorAt{Actor: id, State: actor.Dead}
	switch a := as.byID[id]; {
	case a == nil:
	case a.ended():
		at.Err = a.cause
	case a.claimed || a.state == actor.Claiming:
		return // it is published when it is up
	default:
		at.Err = errs.New(errs.CodeInvalid, "actor %v has no name: only named actors can be called from other jobs", id)
	}
	as.toDirectory(PublishActor{at})
}

// nameHeld gives a name back whose actor is dead, or not known any more.
func (as *actors) nameHeld(m NameHeld) {
	if a := as.byID[m.Actor]; a == nil || a.ended() {
		rel := ReleaseName{Actor: m.Actor, Opts: m.Opts}
		if a != nil {
			rel.Err = a.cause
		}
		as.toDirectory(rel)
	}
}

func (as *actors) nameClaimed(m NameClaimed) {
	if m.Existing == m.Actor {
		m.Existing = ids.ActorID{} // claimed before, by a core that was lost
	}
	a := as.byID[m.Actor]
	if a == nil || a.state != actor.Claiming {
		if m.Err == nil && m.Existing.IsZero() && (a == nil || a.ended()) {
			rel := ReleaseName{Actor: m.Actor} // it died before it had its name
			if a != nil {
				rel.Opts, rel.Err = a.opts, a.cause
			}
			as.toDirectory(rel)
		}
		return
	}
	t := a.rec
	t.flags &^= taskWaitsName
	switch {
	case !m.Existing.IsZero() && a.opts.GetIfExists && as.actorFor(m.Existing) != a:
		as.moveActor(a, actor.Existing)
		a.alias = as.actorFor(m.Existing)
		as.journal.logActor(a)
		as.handleReady(t, m.Existing)
		as.aliased(t, a)
	case m.Err != nil || !m.Existing.IsZero():
		err := m.Err
		if err == nil {
			err = errs.New(errs.CodeNameTaken, "actor name %q in namespace %q belongs to actor %v", a.opts.ActorName, a.opts.Namespace, m.Existing)
		}
		as.up.fail(t, err)
	default:
		a.claimed = true
		as.moveActor(a, actor.Claimed)
		as.journal.logActor(a)
		as.up.await(t)
	}
}

// aliased ends a creation that found another actor under its name; calls that came
// meanwhile go there.
func (as *actors) aliased(t *taskRec, a *actorRec) {
	as.journal.logDone(t, nil)
	as.tasks.move(t, task.Ready)
	as.tasks.move(t, task.Push)
	as.tasks.move(t, task.Finish)
	as.stats.Finished++
	to := a.real()
	as.calls.eachQueued(a, func(q *taskRec) {
		q.unlist()
		a.pending--
		to.pending++
		q.actor = to
		q.flags |= taskTurn
		cr := as.calls.caller(to, q)
		cr.advancePast(q.spec.Seq) // those behind it name the same actor
		as.calls.releaseInOrder(cr)
		if err := as.calls.refusesCalls(to); err != nil { // it has died meanwhile
			as.up.fail(q, err)
		} else if q.state == task.PendingActor {
			to.queue.pushBack(q)
		}
	})
	as.moveWatchers(a, to)
	as.up.afterEnd(t)
	as.objects.releaseArgs(t)
	as.calls.touchActor(to)
}

// publish tells the directory where a named actor is.
func (as *actors) publish(a *actorRec) {
	if !a.claimed {
		return
	}
	at := ActorAt{Actor: a.id, State: a.state, Opts: a.opts, Err: a.cause, Restarts: a.restarts}
	if a.lease != nil {
		at.Lease, at.Worker = a.lease.id, a.lease.worker.id
	}
	as.toDirectory(PublishActor{at})
}

// actorFor finds the actor a call is for. One of another job is located; one of this job
// that is unknown has died and been forgotten.
func (as *actors) actorFor(id ids.ActorID) *actorRec {
	if a := as.byID[id]; a != nil {
		return a.real()
	}
	a := &actorRec{id: id}
	if id.Job() == as.cfg.Job {
		a.state = actor.Dead
		a.cause = as.objects.whyDropped(ids.TaskID(id).Return(0))
		return a
	}
	as.byID[id] = a
	as.moveActor(a, actor.Locate)
	as.toDirectory(LocateActor{Actor: id})
	return a
}

// actorAt is where another job's actor is now.
func (as *actors) actorAt(m ActorAt) {
	a := as.byID[m.Actor]
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
	if m.State != actor.Alive || a.lease == nil || a.lease.id != m.Lease {
		as.foreignMoved(a, m.Err)
	}
	if a.doubt {
		as.failUncertainCalls(a, m)
	}
	switch m.State {
	case actor.Alive:
		if a.state != actor.Alive {
			as.foreignUp(a, m)
		}
	case actor.Dead:
		err := m.Err
		if err == nil {
			err = errs.New(errs.CodeActorDied, "actor %v is dead", a.id)
		}
		as.die(a, err)
	case actor.Locating:
		as.notFound(a, m.Err)
	default:
		if a.state == actor.Alive {
			as.moveActor(a, actor.Restart)
			as.calls.failUnavailable(a)
		}
	}
}

// notFound fails the calls of another job's actor that the node cannot find, which is no word on whether it lives. The next call asks again.
func (as *actors) notFound(a *actorRec, err *errs.Error) {
	as.calls.eachQueued(a, func(t *taskRec) { as.up.fail(t, err) })
	for _, w := range a.watchers {
		as.toClient(w.client, &wire.ActorNews{Actor: w.as, State: wire.ActorRestarting, Err: err})
	}
	a.watchers = nil
	if a.pending == 0 {
		delete(as.byID, a.id)
	}
}

// failUncertainCalls fails the calls that a lost core may have pushed and that must not run twice. A worker that has said what it has
// would have named them.
func (as *actors) failUncertainCalls(a *actorRec, m ActorAt) {
	a.doubt = false
	if cl := as.clients.client(m.Worker); m.State == actor.Alive && cl != nil && cl.reported {
		return
	}
	as.calls.failUnavailable(a)
}

func (as *actors) foreignUp(a *actorRec, m ActorAt) {
	cl := as.clients.client(m.Worker)
	if cl == nil || cl.gone {
		return // told again when it has moved
	}
	l := &leaseRec{id: m.Lease, worker: cl, actor: a, state: lease.Actor}
	as.leases.addLease(l)
	a.lease = l
	as.moveActor(a, actor.Up)
	as.calls.touchActor(a)
}

// foreignMoved deals with the calls on the place where another job's actor was.
func (as *actors) foreignMoved(a *actorRec, err *errs.Error) {
	l := a.lease
	if l == nil {
		return
	}
	if err == nil {
		err = errs.New(errs.CodeActorUnavailable, "actor %v has moved", a.id)
	}
	if l.ranCalls() { // its own job does not know of them
		as.toDirectory(CallsLost{Actor: a.id, Lease: l.id})
	}
	a.lease = nil
	calls := l.lane.drain()
	as.leases.unpushFetching(l)
	l.out = nil
	as.leases.endLease(l)
	as.foreignLost(a, calls, err)
}

// foreignLost is another job's actor whose worker is gone; its owner says what becomes of it.
func (as *actors) foreignLost(a *actorRec, calls []*taskRec, err *errs.Error) {
	if a.state == actor.Alive {
		as.moveActor(a, actor.Restart)
	}
	as.calls.returnCalls(a, calls, err)
	as.calls.failUnavailable(a)
}

// foreignWorkerGone settles other jobs' actors on a worker at once: the scheduler tells only
// the lease's own job.
func (as *actors) foreignWorkerGone(cl *clientRec) {
	for _, l := range append([]*leaseRec(nil), cl.leases...) {
		if l.actor != nil && l.actor.rec == nil {
			as.foreignMoved(l.actor, cl.deathCause())
		}
	}
}

// maybeForgetForeign drops an actor of another job that no call is for.
func (as *actors) maybeForgetForeign(a *actorRec) {
	if a.rec != nil || a.pending > 0 || len(a.watchers) > 0 || a.id.Job() == as.cfg.Job || a.state != actor.Dead {
		return
	}
	as.setCause(a, nil, nil)
	delete(as.byID, a.id)
}
