package owner

import (
	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/raylet/owner/actor"
	"mobula/raylet/owner/lease"
	"mobula/raylet/owner/object"
	"mobula/raylet/owner/record"
	"mobula/raylet/owner/task"
	"mobula/raylet/sched"
	"mobula/wire"
)

// actors is the life of actors: named, made, restarted, stopped, watched; and where those of other jobs are.
type actors struct {
	*step
	journal          *journal
	tasks            *tasks
	objects          *objects
	clients          *clients
	leases           *leases
	calls            *calls
	up               actorsUp
	byID             map[ids.ActorID]*actorRec
	movedActor       []*actorRec
	escalated        []escalation
	lastDetachedDied bool // a detached actor has died, and there is no driver
}

func newActors(s *step, j *journal, ts *tasks, os *objects, cs *clients, ls *leases, cc *calls, up actorsUp) *actors {
	return &actors{step: s, journal: j, tasks: ts, objects: os, clients: cs, leases: ls, calls: cc, up: up, byID: make(map[ids.ActorID]*actorRec)}
}

// actorsUp is the life of the task that creates an actor.
type actorsUp interface {
	await(t *taskRec)
	requeue(t *taskRec, front bool)
	withdraw(t *taskRec)
	fail(t *taskRec, err *errs.Error)
	afterEnd(t *taskRec)
	reap(t *taskRec)
}

// actorRec is one actor: of this job, with the task that creates it, or of another job,
// to which only calls are made from here.
type actorRec struct {
	id        ids.ActorID
	rec       *taskRec          // its creation; nil: another job's
	opts      *wire.TaskOptions // of its creation; nil while another job's is being located
	state     actor.State
	alias     *actorRec // state Alias: the actor that has the name
	lease     *leaseRec // while alive
	callers   map[ids.TaskID]*callerRec
	last      *callerRec
	parent    ids.ActorID     // where it escalates: the actor that has created it
	hurt      *errs.Error     // the failure of a child while its constructor ran; the log has it
	uncharged bool            // its last restart
	queue     taskList        // calls whose turn it is, in the order they are pushed
	pending   int             // calls that have not ended
	restarts  int32           // that were charged
	resets    int32           // restarts that were not: another brought its process down
	streak    int             // restarts in a row, for their back-off
	upAt      int64           // when it was last made, Unix ns; 0: it is not up
	lostLease ids.LeaseID     // of its last instance
	inquiry   *culpritInquiry // nil: nobody asks who is to be charged for its last death
	dirty     bool
	forgot    bool // some of its callers
	claimed   bool // its name is registered
	doubt     bool // another job's, and calls for it may have run that a lost core had pushed
	cause     *errs.Error
	stop      *errs.Error // why it is to end after its calls; nil: it is not
	closing   *timer      // of its close hook, while it is Stopping
	watchers  []watcher
	moved     bool          // in this step, and its watchers are to hear
	logged    *record.Actor // what the log of a rebuilt core says
}

// afterEnd tells whether nothing more will happen to the actor.
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
	if ev == actor.Restart {
		as.tasks.restarting = a.rec
	}
	if len(a.watchers) > 0 && !a.moved {
		a.moved = true
		as.movedActor = append(as.movedActor, a)
	}
}

// newActor makes the record of the actor that a task creates.
func newActor(t *taskRec) *actorRec {
	return &actorRec{id: ids.ActorID(t.id()), rec: t, opts: t.spec.Opts}
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
