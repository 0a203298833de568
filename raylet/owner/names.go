package owner

import (
	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/raylet/owner/actor"
	"mobula/raylet/owner/lease"
	"mobula/raylet/owner/task"
	"mobula/wire"
)

// Names, and actors of other jobs. The registry is asked, never waited for.

func (c *Core) fromRegistry(m any) {
	switch m := m.(type) {
	case NameClaimed:
		c.nameClaimed(m)
	case ActorAt:
		c.actorAt(m)
	case KillRequested:
		c.killActor((*wire.KillActor)(&m))
	case CallsLost:
		c.callsLost(m)
	case LocateActor:
		c.sought(m.Actor)
	case NameHeld:
		c.nameHeld(m)
	}
}

// sought answers another job that asks for an actor of this one which the registry does not know:
// one that will not come.
func (c *Core) sought(id ids.ActorID) {
	at := ActorAt{Actor: id, State: actor.Dead}
	switch a := c.actors[id]; {
	case a == nil:
	case a.over():
		at.Err = a.cause
	case a.claimed || a.state == actor.Claiming:
		return // it is published when it is up
	default:
		at.Err = errs.New(errs.CodeInvalid, "actor %v has no name: only named actors can be called from other jobs", id)
	}
	c.toRegistry(PublishActor{at})
}

// nameHeld gives a name back whose actor is dead, or not known any more.
func (c *Core) nameHeld(m NameHeld) {
	if a := c.actors[m.Actor]; a == nil || a.over() {
		rel := ReleaseName{Actor: m.Actor, Opts: m.Opts}
		if a != nil {
			rel.Err = a.cause
		}
		c.toRegistry(rel)
	}
}

func (c *Core) nameClaimed(m NameClaimed) {
	if m.Existing == m.Actor {
		m.Existing = ids.ActorID{} // claimed before, by a core that was lost
	}
	a := c.actors[m.Actor]
	if a == nil || a.state != actor.Claiming {
		if m.Err == nil && m.Existing.IsZero() && (a == nil || a.over()) {
			rel := ReleaseName{Actor: m.Actor} // it died before it had its name
			if a != nil {
				rel.Opts, rel.Err = a.opts, a.cause
			}
			c.toRegistry(rel)
		}
		return
	}
	t := a.rec
	t.flags &^= taskWaitsName
	switch {
	case !m.Existing.IsZero() && a.opts.GetIfExists && c.actorFor(m.Existing) != a:
		c.moveActor(a, actor.Existing)
		a.alias = c.actorFor(m.Existing)
		c.logActor(a)
		c.handleReady(t, m.Existing)
		c.aliased(t, a)
	case m.Err != nil || !m.Existing.IsZero():
		err := m.Err
		if err == nil {
			err = errs.New(errs.CodeNameTaken, "actor name %q in namespace %q belongs to actor %v", a.opts.ActorName, a.opts.Namespace, m.Existing)
		}
		c.fail(t, err)
	default:
		a.claimed = true
		c.moveActor(a, actor.Claimed)
		c.logActor(a)
		c.await(t)
	}
}

// aliased ends a creation that found another actor under its name; calls that came
// meanwhile go there.
func (c *Core) aliased(t *taskRec, a *actorRec) {
	c.logDone(t, nil)
	c.move(t, task.Ready)
	c.move(t, task.Push)
	c.move(t, task.Finish)
	c.stats.Finished++
	to := a.real()
	c.eachQueued(a, func(q *taskRec) {
		q.unlist()
		a.pending--
		to.pending++
		q.actor = to
		q.flags |= taskTurn
		cr := c.caller(to, q)
		cr.had(q.spec.Seq) // those behind it name the same actor
		c.takeTurns(cr)
		if err := c.refusesCalls(to); err != nil { // it has died meanwhile
			c.fail(q, err)
		} else if q.state == task.PendingActor {
			to.queue.pushBack(q)
		}
	})
	c.moveWatchers(a, to)
	c.over(t)
	c.unholdArgs(t)
	c.touchActor(to)
}

// publish tells the registry where a named actor is.
func (c *Core) publish(a *actorRec) {
	if !a.claimed {
		return
	}
	at := ActorAt{Actor: a.id, State: a.state, Opts: a.opts, Err: a.cause, Restarts: a.restarts}
	if a.lease != nil {
		at.Lease, at.Worker = a.lease.id, a.lease.worker.id
	}
	c.toRegistry(PublishActor{at})
}

// actorFor finds the actor a call is for. One of another job is located; one of this job
// that is unknown has died and been forgotten.
func (c *Core) actorFor(id ids.ActorID) *actorRec {
	if a := c.actors[id]; a != nil {
		return a.real()
	}
	a := &actorRec{id: id}
	if id.Job() == c.cfg.Job {
		a.state = actor.Dead
		return a
	}
	c.actors[id] = a
	c.moveActor(a, actor.Locate)
	c.toRegistry(LocateActor{Actor: id})
	return a
}

// actorAt is where another job's actor is now.
func (c *Core) actorAt(m ActorAt) {
	a := c.actors[m.Actor]
	if a == nil || a.rec != nil || a.over() {
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
		c.foreignMoved(a, m.Err)
	}
	if a.doubt {
		c.settleDoubt(a, m)
	}
	switch m.State {
	case actor.Alive:
		if a.state != actor.Alive {
			c.foreignUp(a, m)
		}
	case actor.Dead:
		err := m.Err
		if err == nil {
			err = errs.New(errs.CodeActorDied, "actor %v is dead", a.id)
		}
		c.die(a, err)
	default:
		if a.state == actor.Alive {
			c.moveActor(a, actor.Restart)
			c.failUnavailable(a)
		}
	}
}

// settleDoubt fails the calls that a lost core may have pushed and that must not run twice. A worker that has said what it has
// would have named them.
func (c *Core) settleDoubt(a *actorRec, m ActorAt) {
	a.doubt = false
	if cl := c.client(m.Worker); m.State == actor.Alive && cl != nil && cl.spoke {
		return
	}
	c.failUnavailable(a)
}

func (c *Core) foreignUp(a *actorRec, m ActorAt) {
	cl := c.client(m.Worker)
	if cl == nil || cl.gone {
		return // told again when it has moved
	}
	l := &leaseRec{id: m.Lease, worker: cl, actor: a, state: lease.Actor}
	c.addLease(l)
	a.lease = l
	c.moveActor(a, actor.Up)
	c.touchActor(a)
}

// foreignMoved deals with the calls on the place where another job's actor was.
func (c *Core) foreignMoved(a *actorRec, err *errs.Error) {
	l := a.lease
	if l == nil {
		return
	}
	if err == nil {
		err = errs.New(errs.CodeActorUnavailable, "actor %v has moved", a.id)
	}
	if l.ranCalls() { // its own job does not know of them
		c.toRegistry(CallsLost{Actor: a.id, Lease: l.id})
	}
	a.lease = nil
	calls := l.lane.drain()
	c.giveBackFetching(l)
	l.out = nil
	c.endLease(l)
	c.foreignLost(a, calls, err)
}

// foreignLost is another job's actor whose worker is gone; its owner says what becomes of it.
func (c *Core) foreignLost(a *actorRec, calls []*taskRec, err *errs.Error) {
	if a.state == actor.Alive {
		c.moveActor(a, actor.Restart)
	}
	c.returnCalls(a, calls, err)
	c.failUnavailable(a)
}

// foreignWorkerGone settles other jobs' actors on a worker at once: the scheduler tells only
// the lease's own job.
func (c *Core) foreignWorkerGone(cl *clientRec) {
	for _, l := range append([]*leaseRec(nil), cl.leases...) {
		if l.actor != nil && l.actor.rec == nil {
			c.foreignMoved(l.actor, cl.deathCause())
		}
	}
}

// maybeForgetForeign drops an actor of another job that no call is for.
func (c *Core) maybeForgetForeign(a *actorRec) {
	if a.rec != nil || a.pending > 0 || len(a.watchers) > 0 || a.id.Job() == c.cfg.Job || a.state != actor.Dead {
		return
	}
	c.setCause(a, nil, nil)
	delete(c.actors, a.id)
}
