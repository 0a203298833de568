package owner

import (
	"time"

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
	parent    ids.ActorID // where it escalates: the actor that has created it
	hurt      *errs.Error // the failure of a child while its constructor ran; the log has it
	uncharged bool        // its last restart
	queue     taskList    // calls whose turn it is, in the order they are pushed
	pending   int         // calls that have not ended
	restarts  int32       // that were charged
	resets    int32       // restarts that were not: another brought its process down
	streak    int         // restarts in a row, for their back-off
	upAt      int64       // when it was last made, Unix ns; 0: it is not up
	lostLease ids.LeaseID // of its last instance
	inquest   *inquest    // nil: nobody asks who is to be charged for its last death
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

// over tells whether nothing more will happen to the actor.
func (a *actorRec) over() bool { return a.state == actor.Dead || a.state == actor.Alias }

// real follows an alias.
func (a *actorRec) real() *actorRec {
	for a.alias != nil {
		a = a.alias
	}
	return a
}

func (c *Core) moveActor(a *actorRec, ev actor.Event) {
	to, ok := actor.Next(a.state, ev)
	if !ok {
		panic("owner: actor " + a.id.String() + " is " + a.state.String() + " and cannot " + ev.String())
	}
	a.state = to
	if ev == actor.Restart {
		c.restarting = a.rec
	}
	if len(a.watchers) > 0 && !a.moved {
		a.moved = true
		c.movedActor = append(c.movedActor, a)
	}
}

// newActor makes the record of the actor that a task creates.
func newActor(t *taskRec) *actorRec {
	return &actorRec{id: ids.ActorID(t.id()), rec: t, opts: t.spec.Opts}
}

// acceptActorTask takes a creation or a call. It is false when the task has ended.
func (c *Core) acceptActorTask(t *taskRec) bool {
	if t.spec.Kind == wire.TaskActorCall {
		return c.acceptCall(t)
	}
	if t.actor == nil { // else it was built from the log, or has a parent
		t.actor = newActor(t)
	}
	a := t.actor
	c.actors[a.id] = a
	c.stats.ActorsCreated++
	c.holdArgs(t)
	t.class = c.classOf(wire.TaskActorCreate, t.spec.Opts)
	if a.opts.ActorName == "" {
		c.moveActor(a, actor.Create)
		return true
	}
	c.moveActor(a, actor.Claim)
	t.flags |= taskWaitsName
	if c.pause == nil { // else the log may say that it has the name already
		c.toRegistry(ClaimName{Actor: a.id, Opts: a.opts})
	}
	return true
}

// created ends a creation: the lease is the actor's for its life.
func (c *Core) created(cl *clientRec, t *taskRec, l *leaseRec, d *wire.Done) {
	a := t.actor
	if l == nil { // it ended while a restarted core did not know its lease yet
		l = c.adoptLease(d.Lease, cl, t.class)
		if l == nil {
			c.requeue(t, true)
			return
		}
	}
	c.leaveClass(l)
	l.actor = a
	c.moveLease(l, lease.Up)
	a.lease = l
	a.upAt = c.now
	c.moveActor(a, actor.Up)
	c.toSched(sched.ActorUp{Lease: l.id})
	c.logActor(a)
	c.publish(a)
	if t.ret0.state == object.Pending {
		c.handleReady(t, a.id)
	}
	c.logDone(t, nil)
	c.move(t, task.Finish)
	c.stats.Finished++
	c.over(t)
	if t.flags&taskCancelled != 0 || !t.ret0.held() && !a.opts.Detached {
		c.loosen(&t.ret0)
	}
	c.touchActor(a)
	if a.hurt != nil {
		c.chargeHurt(a)
	}
}

// handleReady resolves the actor's handle: the value is the id to call.
func (c *Core) handleReady(t *taskRec, id ids.ActorID) {
	c.resolve(&t.ret0, handleValue(t, id, c.cfg.Job), object.SetInline)
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
func (c *Core) creationFailed(a *actorRec, err *errs.Error) {
	switch {
	case a.over():
	case err.Code == errs.CodeCancelled || err.Code == errs.CodeNameTaken:
		c.die(a, err)
	default:
		c.fall(a, err)
	}
}

// creationLost is a creation whose process died: that uses a restart.
func (c *Core) creationLost(t *taskRec, err *errs.Error) {
	a := t.actor
	if !c.useRestart(a) {
		t.ext().err = err
		c.fail(t, c.actorDied(a, err))
		return
	}
	c.creationAgain(t, err)
}

// creationAgain runs a creation again whose process died, after its back-off.
func (c *Core) creationAgain(t *taskRec, err *errs.Error) {
	a := t.actor
	c.setCause(a, err, nil)
	c.moveActor(a, actor.Restart)
	c.logActor(a)
	if wait := c.restartDelay(a); wait > 0 && t.flags&taskCancelled == 0 {
		t.ext().err = err
		c.later(t, wait)
		return
	}
	c.requeue(t, true)
}

// useRestart takes one restart, and is false if none is left.
func (c *Core) useRestart(a *actorRec) bool {
	if a.opts.MaxRestarts >= 0 && a.restarts >= a.opts.MaxRestarts {
		return false
	}
	a.restarts++
	a.uncharged = false
	c.stats.ActorRestarts++
	return true
}

// restart runs an actor's creation again, at once or after a wait.
func (c *Core) restart(a *actorRec, calls []*taskRec, err *errs.Error, wait time.Duration) {
	c.setCause(a, err, nil)
	c.moveActor(a, actor.Restart)
	c.logActor(a)
	c.publish(a)
	t := a.rec
	if wait > 0 {
		t.ext().err = err
		c.later(t, wait)
	} else {
		c.move(t, task.Rerun)
		c.workQ = append(c.workQ, t)
	}
	c.returnCalls(a, calls, err)
	c.failUnavailable(a)
	c.holdArgs(t)
	if t.flags&taskCounted == 0 {
		t.flags |= taskCounted
		t.class = c.classAgain(t.class)
		t.class.live++
	}
}

// die ends an actor for good: its calls fail, its name and its handle are free.
func (c *Core) die(a *actorRec, err *errs.Error) {
	if a.over() {
		return
	}
	c.setCause(a, err, nil)
	c.stopTimerOf(a)
	c.moveActor(a, actor.Die)
	c.bereft = c.bereft || c.orphan && a.rec != nil && a.opts.Detached
	c.stats.ActorsDied++
	c.returnCalls(a, c.stopInstance(a, false), err)
	c.failQueued(a)
	if a.rec == nil {
		c.toRegistry(LocateActor{Actor: a.id, Done: true})
		c.maybeForgetForeign(a)
		return
	}
	c.logActor(a)
	if a.claimed {
		a.claimed = false
		c.toRegistry(ReleaseName{Actor: a.id, Opts: a.opts, Err: err})
	}
	c.endCreation(a.rec, err)
}

// stopInstance ends an actor's life on its worker, if it has one, and gives the calls that
// were there. The calls of other jobs the worker tells itself whether another instance follows.
func (c *Core) stopInstance(a *actorRec, restarts bool) []*taskRec {
	l := a.lease
	if l == nil {
		return nil
	}
	c.toClient(l.worker, &wire.StopActor{Actor: a.id, Restarts: restarts})
	return c.leaveInstance(a)
}

// leaveInstance gives an actor's lease back, and the calls that were there.
func (c *Core) leaveInstance(a *actorRec) []*taskRec {
	l := a.lease
	a.lease = nil
	c.giveBackFetching(l)
	calls := l.lane.drain()
	l.out = nil
	c.returnLease(l)
	return calls
}

// endCreation ends the creation of an actor that is dead, wherever it stands.
func (c *Core) endCreation(t *taskRec, err *errs.Error) {
	switch {
	case t.state.Terminal():
		c.unholdArgs(t) // it will not run again
	case t.state.OnWorker():
		l := t.lease
		c.toLease(l, &wire.CancelTask{Task: t.id()})
		c.toLease(l, &wire.StopActor{Actor: t.actor.id})
		c.closeLease(l)
		c.fail(t, err)
	default:
		c.withdraw(t)
		c.fail(t, err)
	}
	c.reap(t)
}

// handleGone ends an actor whose last handle is gone and that no call needs.
func (c *Core) handleGone(a *actorRec) {
	if a.over() || a.opts.Detached || c.pause != nil {
		return
	}
	if a.stop == nil {
		a.stop = errs.New(errs.CodeActorDied, "actor %v (%s): its last handle was released", a.id, a.opts.Func)
		c.setCause(a, a.stop, a.hurt)
	}
	c.maybeStop(a)
}

func (c *Core) killActor(m *wire.KillActor) {
	id, restart := m.Actor, m.Restart
	a := c.actors[id]
	if a == nil {
		if id.Job() != c.cfg.Job { // found by its name, and never called
			c.toRegistry(KillActor(*m))
		}
		return
	}
	a = a.real()
	if a.rec == nil {
		c.toRegistry(KillActor{Actor: a.id, Restart: restart, Stop: m.Stop})
		return
	}
	if a.over() {
		return
	}
	if m.Stop {
		c.stopActor(a, errs.New(errs.CodeActorDied, "actor %v (%s) was stopped", a.id, a.opts.Func))
		return
	}
	err := errs.New(errs.CodeActorDied, "actor %v (%s) was killed", a.id, a.opts.Func)
	if !restart {
		c.killActorWith(a, err)
		return
	}
	if a.state != actor.Alive {
		return // it is on its way up
	}
	if !c.useRestart(a) {
		c.die(a, err)
		return
	}
	err.Code, err.Msg = errs.CodeActorUnavailable, err.Msg+", to restart"
	c.restart(a, c.stopInstance(a, true), err, 0)
}

func (c *Core) killActorWith(a *actorRec, err *errs.Error) {
	if !a.over() {
		c.die(a, err)
	}
}

func (c *Core) actorDied(a *actorRec, err *errs.Error) *errs.Error {
	e := &errs.Error{Code: errs.CodeActorDied, Name: a.opts.Func, Task: a.id.String(), Cause: because(err)}
	e.Msg = "actor " + a.id.String() + " (" + a.opts.Func + ") lost its process after " + itoa(a.restarts) + " of " + itoa(a.opts.MaxRestarts) + " restarts: " + err.Error()
	return e
}
