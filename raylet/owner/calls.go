package owner

import (
	"maps"
	"time"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/raylet/owner/actor"
	"mobula/raylet/owner/task"
)

// callerRec keeps the calls of one caller to one actor in order: a call whose arguments
// are not there yet, or whose predecessor has not come, holds up those after it.
type callerRec struct {
	id    ids.TaskID
	actor *actorRec
	next  uint64              // the sequence number whose turn it is
	wait  taskList            // by sequence number
	gap   *timer              // runs while the first of wait is not next
	ended map[uint64]struct{} // numbers behind next whose calls have ended without a turn
}

// had goes on behind a number, and behind those after it that are not waited for.
func (cr *callerRec) had(seq uint64) {
	cr.next = max(cr.next, seq+1)
	for len(cr.ended) > 0 {
		if _, ok := cr.ended[cr.next]; !ok {
			return
		}
		delete(cr.ended, cr.next)
		cr.next++
	}
}

// skip notes that the call of a number will not have its turn: those behind it do not wait for it.
func (cr *callerRec) skip(seq uint64) {
	switch {
	case seq == cr.next:
		cr.had(seq)
	case seq > cr.next:
		if cr.ended == nil {
			cr.ended = make(map[uint64]struct{})
		}
		cr.ended[seq] = struct{}{}
	}
}

const manyCallers = 4096 // of one actor; above it, those with nothing waiting are forgotten

// acceptCall takes a call. It is false when the call has ended.
func (c *Core) acceptCall(t *taskRec) bool {
	a := c.actorFor(t.spec.Actor)
	t.actor = a // also of a call that fails at once: messages name it
	c.holdArgs(t)
	a.pending++
	cr := c.caller(a, t)
	err := c.refusesCalls(a)
	switch {
	case err != nil:
		c.fail(t, err)
	case a.opts != nil && a.opts.MaxPendingCalls > 0 && a.pending > int(a.opts.MaxPendingCalls):
		c.fail(t, errs.New(errs.CodePendingCallsLimit, "actor %v (%s) has %d calls pending, its limit is %d: wait for some to end", a.id, a.opts.Func, a.pending-1, a.opts.MaxPendingCalls))
	default:
		c.lineUp(cr, t)
		return true
	}
	return false
}

// refusesCalls gives the reason why an actor takes no calls now, or nil.
func (c *Core) refusesCalls(a *actorRec) *errs.Error {
	switch {
	case a.state == actor.Dead, a.stop != nil && c.pause == nil:
		return c.callDied(a)
	case a.state == actor.Restarting && a.opts != nil && a.opts.MaxTaskRetries == 0:
		return c.unavailable(a)
	}
	return nil
}

// lineUp gives a call its place behind those of its caller that wait, unless its turn is now.
func (c *Core) lineUp(cr *callerRec, t *taskRec) {
	seq := t.spec.Seq
	if cr.wait.n == 0 && seq <= cr.next && len(t.spec.Args) == 0 {
		cr.had(seq)
		t.flags |= taskTurn
		return
	}
	cr.stand(t)
	c.watchGap(cr)
}

// stand puts a call into the line of its caller, by its number.
func (cr *callerRec) stand(t *taskRec) {
	p := cr.wait.tail
	for p != nil && p.spec.Seq > t.spec.Seq {
		p = p.prev
	}
	cr.wait.insertAfter(p, t)
}

// lineUpAgain takes a call back that had its turn and must wait for an argument that was
// lost; those of its caller that were to follow it wait behind it.
func (c *Core) lineUpAgain(t *taskRec) {
	cr := c.caller(t.actor, t)
	t.flags &^= taskTurn | taskFront
	cr.stand(t)
	for q := t.actor.queue.head; q != nil; {
		next := q.next
		if q.spec.Caller() == cr.id {
			q.unlist()
			q.flags &^= taskTurn
			cr.stand(q)
		}
		q = next
	}
	c.touchActor(t.actor)
}

func (c *Core) caller(a *actorRec, t *taskRec) *callerRec {
	if a.last != nil && a.last.id == t.spec.Caller() {
		return a.last
	}
	cr := a.callers[t.spec.Caller()]
	if cr == nil {
		cr = &callerRec{id: t.spec.Caller(), actor: a, next: 1}
		if c.lenient || a.forgot {
			cr.next = max(t.spec.Seq, 1)
		}
		if a.callers == nil {
			a.callers = make(map[ids.TaskID]*callerRec)
		} else if len(a.callers) >= manyCallers {
			c.forgetCallers(a)
		}
		a.callers[cr.id] = cr
	}
	a.last = cr
	return cr
}

// forgetCallers drops the callers that have ended; the sequence of one that comes again may
// begin anywhere.
func (c *Core) forgetCallers(a *actorRec) {
	for id, cr := range a.callers {
		if t := c.tasks.task(id); cr.wait.n == 0 && (t == nil || t.state.Terminal()) {
			delete(a.callers, id)
			a.forgot = true
		}
	}
}

// callReady is a call whose arguments are resolved.
func (c *Core) callReady(t *taskRec) {
	a := t.actor
	if t.flags&taskTurn != 0 {
		if t.flags&taskFront != 0 {
			t.flags &^= taskFront
			a.queue.pushFront(t)
		} else {
			a.queue.pushBack(t)
		}
		c.touchActor(a)
		return
	}
	if cr := a.callers[t.spec.Caller()]; cr != nil {
		c.takeTurns(cr)
	}
}

// takeTurns moves the calls of a caller that are next and ready into the actor's queue.
func (c *Core) takeTurns(cr *callerRec) {
	for t := cr.wait.head; t != nil && t.spec.Seq <= cr.next && t.state == task.PendingActor; t = cr.wait.head {
		t.unlist()
		cr.had(t.spec.Seq)
		t.flags |= taskTurn
		cr.actor.queue.pushBack(t)
		c.touchActor(cr.actor)
	}
	c.watchGap(cr)
}

// watchGap bounds the wait for a call that is missing in the sequence.
func (c *Core) watchGap(cr *callerRec) {
	gap := cr.wait.head != nil && cr.wait.head.spec.Seq > cr.next
	switch {
	case gap && cr.gap == nil:
		cr.gap = c.timers.add(c.now+int64(c.cfg.OrderGrace), timer{kind: timerOrder, caller: cr})
	case !gap && cr.gap != nil:
		c.timers.remove(cr.gap)
		cr.gap = nil
	}
}

// orderOver goes on without the missing call: its caller died before it was sent.
func (c *Core) orderOver(cr *callerRec) {
	cr.gap = nil
	if h := cr.wait.head; h != nil {
		cr.next = max(cr.next, h.spec.Seq)
		maps.DeleteFunc(cr.ended, func(seq uint64, _ struct{}) bool { return seq < cr.next })
		c.takeTurns(cr)
	}
}

func (c *Core) touchActor(a *actorRec) {
	if !a.dirty {
		a.dirty = true
		c.dirtyActor = append(c.dirtyActor, a)
	}
}

// pump pushes an actor's calls straight to its worker, up to the window. Calls are pushed in
// order: one whose stored arguments are being pinned holds up the rest.
func (c *Core) pump(a *actorRec) {
	if a.stop != nil {
		c.maybeStop(a)
	}
	if a.state != actor.Alive || a.lease == nil {
		return
	}
	l, window := a.lease, c.window(a)
	for a.queue.head != nil && len(l.fetching) == 0 && l.lane.len() < window {
		t := a.queue.head
		t.unlist()
		if len(t.spec.Args) == 0 {
			t.start++
			c.push(l, t, nil)
			continue
		}
		switch c.argsOf(t) {
		case argsAgain:
			c.move(t, task.Requeue)
			t.flags |= taskFront
			c.workQ = append(c.workQ, t)
			return // what follows waits until it is known how long this one does
		case argsHeavy:
			c.packArgs(t)
			return
		case argsStored:
			t.start++
			c.pinArgs(t, l)
		default:
			args, _ := c.argValues(t, nil)
			t.start++
			c.push(l, t, args)
		}
	}
}

// window bounds the calls pushed to an actor and not done. It is no less than what the actor runs at once: calls that wait for
// another must not keep that one out.
func (c *Core) window(a *actorRec) int {
	n := int64(c.cfg.ActorWindow)
	if a.opts == nil {
		return int(n)
	}
	all := int64(a.opts.MaxConcurrency)
	for _, g := range a.opts.Groups {
		all += int64(g.Max)
	}
	return int(max(n, all))
}

// callOver is the end of a call, whatever it was.
func (c *Core) callOver(t *taskRec) {
	a := t.actor
	a.pending--
	if a.stop != nil {
		c.touchActor(a)
	}
	if t.flags&taskTurn == 0 && t.spec != nil {
		if cr := a.callers[t.spec.Caller()]; cr != nil {
			cr.skip(t.spec.Seq)
			c.takeTurns(cr)
		}
	}
	c.maybeForgetForeign(a)
}

// callAgain puts a call that failed and is to be tried again at the head of its actor's queue.
func (c *Core) callAgain(t *taskRec) {
	t.lease = nil
	c.requeue(t, true)
}

// returnCalls deals with the calls that were on an actor's lease when it ended, in order.
func (c *Core) returnCalls(a *actorRec, calls []*taskRec, err *errs.Error) {
	for i := len(calls) - 1; i >= 0; i-- { // from the last, since each goes to the head of the queue
		c.callLost(a, calls[i], err)
	}
}

// callLost is a call whose actor ended under it.
func (c *Core) callLost(a *actorRec, t *taskRec, err *errs.Error) {
	c.unpinArgs(t)
	t.lease = nil
	switch {
	case t.state.Terminal():
		c.stopTimer(t)
		c.reap(t)
	case t.flags&taskCancelled != 0:
		c.end(t, task.Cancel, c.cancelled(t))
	case a.over(), a.state == actor.Stopping:
		c.fail(t, c.callDied(a))
	case c.charge(t):
		t.ext().err = err
		c.callAgain(t)
	default:
		c.setCause(a, err, a.hurt)
		c.fail(t, c.unavailable(a))
	}
}

// failUnavailable fails the calls that wait for an actor that restarts, unless they may be
// tried again.
func (c *Core) failUnavailable(a *actorRec) {
	if a.opts == nil || a.opts.MaxTaskRetries != 0 {
		return
	}
	c.eachQueued(a, func(t *taskRec) { c.fail(t, c.unavailable(a)) })
}

// failQueued fails every call that waits for a dead actor.
func (c *Core) failQueued(a *actorRec) {
	c.eachQueued(a, func(t *taskRec) { c.fail(t, c.callDied(a)) })
}

// eachQueued calls f, which takes it out, for every call that was not pushed.
func (c *Core) eachQueued(a *actorRec, f func(*taskRec)) {
	for a.queue.head != nil {
		f(a.queue.head)
	}
	for _, cr := range a.callers {
		for cr.wait.head != nil {
			t := cr.wait.head
			t.unlist()
			t.flags |= taskTurn
			cr.skip(t.spec.Seq)
			f(t)
		}
		c.watchGap(cr)
	}
}

func (c *Core) callDied(a *actorRec) *errs.Error {
	e := &errs.Error{Code: errs.CodeActorDied, Task: a.id.String(), Msg: "actor " + a.id.String() + " is " + a.gone()}
	if a.cause != nil {
		e.Name, e.Cause = a.cause.Name, because(a.cause)
		e.Msg += ": " + a.cause.Error()
	}
	return e
}

// gone is how errors call what a dead actor is, or one that takes no more calls.
func (a *actorRec) gone() string {
	if a.stop != nil && !a.over() {
		return "stopping"
	}
	return "dead"
}

func (c *Core) unavailable(a *actorRec) *errs.Error {
	e := &errs.Error{Code: errs.CodeActorUnavailable, Task: a.id.String(), Msg: "actor " + a.id.String() + " is restarting; the call may be made again"}
	if a.rec != nil && a.rec.due() > c.now {
		e.Msg += " in " + (time.Duration(a.rec.due()-c.now) + 50*time.Millisecond).Truncate(100*time.Millisecond).String()
	}
	if a.cause != nil {
		e.Name = a.cause.Name
		e.Msg += ": " + a.cause.Error()
	}
	return e
}

// because gives what the error of a dead actor wraps: what its program did, or what it was ended for. That its process or a
// connection is gone the message tells: ErrWorkerCrashed is of tasks, and what is lost or unavailable may come back.
func because(err *errs.Error) []*errs.Error {
	switch err.Code {
	case errs.CodeWorkerCrashed, errs.CodeDisconnected, errs.CodeActorUnavailable, errs.CodeUnknown:
		var out []*errs.Error
		for _, c := range err.Cause {
			out = append(out, because(c)...)
		}
		return out
	}
	return []*errs.Error{err}
}

// callerGone lets nothing wait for a call that a client would have sent, and tells it no more of actors.
func (c *Core) callerGone(cl *clientRec) {
	for _, a := range c.actors {
		a.forgetWatcher(cl)
		for _, cr := range a.callers {
			if cr.gap != nil {
				c.timers.remove(cr.gap)
				c.orderOver(cr)
			}
		}
	}
}
