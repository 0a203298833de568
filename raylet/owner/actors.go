package owner

import (
	"maps"
	"slices"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/raylet/owner/actor"
	"mobula/raylet/owner/lease"
	"mobula/raylet/owner/object"
	"mobula/raylet/owner/task"
	"mobula/raylet/sched"
	"mobula/wire"
)

// ended tells whether nothing more will happen to the actor.
func (a *actorRec) ended() bool { return a.state == actor.Dead || a.state == actor.Alias }

// real follows an alias.
func (a *actorRec) real() *actorRec {
	for a.alias != nil {
		a = a.alias
	}
	return a
}

func (as *actors) moveActor(a *actorRec, ev actor.Event) {
	to, ok := actor.Next(a.state, ev)
	if !ok {
		panic("owner: actor " + a.id.String() + " is " + a.state.String() + " and cannot " + ev.String())
	}
	a.state = to
	as.noteInstance(a)
	if ev == actor.Restart {
		as.tasks.restarting = a.rec
	}
	if len(a.watchers) > 0 && !a.moved {
		a.moved = true
		as.movedActor = append(as.movedActor, a)
	}
}

// noteInstance has straight look at an actor's instance, before the step ends.
func (as *actors) noteInstance(a *actorRec) {
	if as.cfg.StraightCalls && a.rec != nil && !a.touched {
		a.touched = true
		as.touched = append(as.touched, a)
	}
}

// acceptActorTask takes a creation or a call. It is false when the task has ended.
func (as *actors) acceptActorTask(t *taskRec) bool {
	if t.spec.Kind == wire.TaskActorCall {
		return as.calls.acceptCall(t)
	}
	if t.actor == nil { // else it was built from the log, or has a parent
		t.actor = newActor(t)
	}
	a := t.actor
	as.byID[a.id] = a
	as.stats.ActorsCreated++
	as.objects.holdArgs(t)
	t.class = as.leases.classOf(wire.TaskActorCreate, t.spec.Opts)
	if a.opts.ActorName == "" {
		as.moveActor(a, actor.Create)
		return true
	}
	as.moveActor(a, actor.Claim)
	t.flags |= taskWaitsName
	if !as.recovering { // else the log may say that it has the name already
		as.claimName(a)
	}
	return true
}

// created ends a creation: the lease is the actor's for its life.
func (as *actors) created(cl *clientRec, t *taskRec, l *leaseRec, d *wire.Done) {
	a := t.actor
	if l == nil { // it ended while a restarted core did not know its lease yet
		l = as.leases.adoptLease(d.Lease, cl, t.class)
		if l == nil {
			as.up.requeue(t, true)
			return
		}
	}
	as.leases.leaveClass(l)
	l.actor = a
	as.leases.moveLease(l, lease.Up)
	a.lease = l
	a.upAt = as.now
	as.moveActor(a, actor.Up)
	as.toSched(sched.ActorUp{Lease: l.id})
	as.journal.logActor(a)
	as.publish(a)
	if t.ret0.state == object.Pending {
		as.handleReady(t, a.id)
	}
	as.journal.logDone(t, nil)
	as.tasks.move(t, task.Finish)
	as.stats.Finished++
	as.up.afterEnd(t)
	if t.flags&taskCancelled != 0 || !t.ret0.held() && !a.opts.Detached {
		as.objects.queueRecount(&t.ret0)
	}
	as.calls.touchActor(a)
	if a.hurt != nil {
		as.chargeParent(a)
	}
}

// handleReady resolves the actor's handle: the value is the id to call.
func (as *actors) handleReady(t *taskRec, id ids.ActorID) {
	as.objects.resolve(&t.ret0, handleValue(t, id, as.cfg.Job), object.SetInline)
}

func handleValue(t *taskRec, id ids.ActorID, job ids.JobID) *wire.Result {
	data := ids.TaskID(id).Bytes()
	res := &wire.Result{Kind: wire.ResultInline, Value: wire.Value{Data: data}, Size: uint64(len(data))}
	if id != t.actor.id && id.Job() == job {
		res.Value.Refs = []ids.ObjectID{ids.TaskID(id).Return(0)} // it keeps the other actor
	}
	return res
}

// creationFailed is the end of a creation without an actor.
func (as *actors) creationFailed(a *actorRec, err *errs.Error) {
	switch {
	case a.ended():
	case err.Code == errs.CodeCancelled || err.Code == errs.CodeNameTaken:
		as.die(a, err)
	default:
		as.failForGood(a, err)
	}
}

// die ends an actor for good: its calls fail, its name and its handle are free.
func (as *actors) die(a *actorRec, err *errs.Error) {
	if a.ended() {
		return
	}
	as.setCause(a, err, nil)
	as.stopTimerOf(a)
	as.moveActor(a, actor.Die)
	as.lastDetachedDied = as.lastDetachedDied || as.orphan && a.rec != nil && a.opts.Detached
	as.stats.ActorsDied++
	as.calls.returnCalls(a, as.stopInstance(a, false), err)
	as.calls.failQueued(a)
	if a.rec == nil {
		as.toDirectory(LocateActor{Actor: a.id, Done: true})
		as.maybeForgetForeign(a)
		return
	}
	as.journal.logActor(a)
	if a.claimed {
		a.claimed = false
		as.toDirectory(ReleaseName{Actor: a.id, Opts: a.opts, Err: err})
	}
	as.endCreation(a.rec, err)
}

// stopInstance ends an actor's life on its worker, if it has one, and gives the calls that
// were there. The calls of other jobs the worker tells itself whether another instance follows.
func (as *actors) stopInstance(a *actorRec, restarts bool) []*taskRec {
	l := a.lease
	if l == nil {
		return nil
	}
	as.toClient(l.worker, &wire.StopActor{Actor: a.id, Restarts: restarts})
	return as.leaveInstance(a)
}

// leaveInstance gives an actor's lease back, and the calls that were there.
func (as *actors) leaveInstance(a *actorRec) []*taskRec {
	l := a.lease
	a.lease = nil
	as.leases.unpushFetching(l)
	calls := l.lane.drain()
	l.out = nil
	as.leases.returnLease(l)
	return calls
}

// endCreation ends the creation of an actor that is dead, wherever it stands.
func (as *actors) endCreation(t *taskRec, err *errs.Error) {
	switch {
	case t.state.Terminal():
		as.objects.releaseArgs(t) // it will not run again
	case t.state.OnWorker():
		l := t.lease
		as.leases.toLease(l, &wire.CancelTask{Task: t.id()})
		as.leases.toLease(l, &wire.StopActor{Actor: t.actor.id})
		as.leases.closeLease(l)
		as.up.fail(t, err)
	default:
		as.up.withdraw(t)
		as.up.fail(t, err)
	}
	as.up.reap(t)
}

// lastHandleReleased ends an actor whose last handle is gone and that no call needs.
func (as *actors) lastHandleReleased(a *actorRec) {
	if a.ended() || a.opts.Detached || as.recovering {
		return
	}
	if a.stop == nil {
		a.stop = errs.New(errs.CodeActorDied, "actor %v (%s): its last handle was released", a.id, a.opts.Func)
		as.setCause(a, a.stop, a.hurt)
	}
	as.maybeStop(a)
}

func (as *actors) killActor(m *wire.KillActor) {
	id, restart := m.Actor, m.Restart
	a := as.byID[id]
	if a == nil {
		if id.Job() != as.cfg.Job { // found by its name, and never called
			as.toDirectory(KillActor(*m))
		}
		return
	}
	a = a.real()
	if a.rec == nil {
		as.toDirectory(KillActor{Actor: a.id, Restart: restart, Stop: m.Stop})
		return
	}
	if a.ended() {
		return
	}
	if m.Stop {
		as.stopActor(a, errs.New(errs.CodeActorDied, "actor %v (%s) was stopped", a.id, a.opts.Func))
		return
	}
	err := errs.New(errs.CodeActorDied, "actor %v (%s) was killed", a.id, a.opts.Func)
	if !restart {
		as.killActorWith(a, err)
		return
	}
	if a.state != actor.Alive {
		return // it is on its way up
	}
	if !as.useRestart(a) {
		as.die(a, err)
		return
	}
	err.Code, err.Msg = errs.CodeActorUnavailable, err.Msg+", to restart"
	as.restart(a, as.stopInstance(a, true), err, 0)
}

func (as *actors) killActorWith(a *actorRec, err *errs.Error) {
	if !a.ended() {
		as.die(a, err)
	}
}

func (as *actors) actorDied(a *actorRec, err *errs.Error) *errs.Error {
	e := &errs.Error{Code: errs.CodeActorDied, Name: a.opts.Func, Task: a.id.String(), Cause: wrappedCause(err)}
	e.Msg = "actor " + a.id.String() + " (" + a.opts.Func + ") lost its process after " + itoa(a.restarts) + " of " + itoa(a.opts.MaxRestarts) + " restarts: " + err.Error()
	return e
}

func (as *actors) actorIDs() []ids.ActorID {
	return slices.SortedFunc(maps.Keys(as.byID), func(a, b ids.ActorID) int { return slices.Compare(a[:], b[:]) })
}
