package owner

import (
	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/raylet/owner/actor"
	"mobula/raylet/owner/task"
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
// who writes the row first (gcs). It asks at the step's end: an actor whose last handle was released in the same step has begun to end by then, and its name
// is waited for.
func (as *actors) claimName(a *actorRec) { as.claims = append(as.claims, a) }

func (as *actors) flushClaims() {
	for _, a := range as.claims {
		if a.state == actor.Claiming {
			as.toDirectory(ClaimName{Actor: a.id, Opts: a.opts})
		}
	}
	clear(as.claims)
	as.claims = as.claims[:0]
}

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
		if err := as.calls.refusesCalls(to); err != nil { // it has died meanwhile
			as.up.fail(q, err)
			return
		}
		as.calls.join(q)
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
	at := ActorAt{Actor: a.id, State: a.state, Opts: a.opts, Err: a.cause, Ending: a.stop != nil && !a.ended(), Restarts: a.restarts}
	if a.lease != nil {
		at.Lease, at.Worker = a.lease.id, a.lease.worker.id
	}
	as.toDirectory(PublishActor{at})
}

// actorFor finds the actor a call is for. One of another job is located; one of this job
// that is unknown has died and been forgotten.
func (as *actors) actorFor(id ids.ActorID) *actorRec {
	if a := as.byID[id]; a != nil {
		if a.unreached != nil {
			a.unreached = nil
			as.toDirectory(LocateActor{Actor: id})
		}
		return a.real()
	}
	a := &actorRec{id: id}
	if id.Job() == as.cfg.Job {
		a.state = actor.Dead
		a.cause = as.objects.whyDropped(ids.TaskID(id).Return(0))
		return a
	}
	a.forgot = true // it may have been known, and called, before
	as.byID[id] = a
	as.moveActor(a, actor.Locate)
	as.toDirectory(LocateActor{Actor: id})
	return a
}

// maybeForgetForeign drops an actor of another job that no call is for.
func (as *actors) maybeForgetForeign(a *actorRec) {
	if a.rec != nil || a.pending > 0 || len(a.watchers) > 0 || a.id.Job() == as.cfg.Job || a.state != actor.Dead && a.unreached == nil {
		return
	}
	as.setCause(a, nil, nil)
	delete(as.byID, a.id)
}
