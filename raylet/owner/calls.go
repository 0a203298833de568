package owner

import (
	"bytes"
	"maps"
	"slices"
	"time"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/raylet/owner/actor"
	"mobula/raylet/owner/lease"
	"mobula/raylet/owner/task"
	"mobula/wire"
)

// advancePast goes on behind a number, and behind those after it that are not waited for.
func (cr *callerRec) advancePast(seq uint64) {
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
		cr.advancePast(seq)
	case seq > cr.next:
		if cr.ended == nil {
			cr.ended = make(map[uint64]struct{})
		}
		cr.ended[seq] = struct{}{}
	}
}

const manyCallers = 4096 // of one actor; above it, those with nothing waiting are forgotten

// acceptCall takes a call. It is false when the call has ended.
func (cc *calls) acceptCall(t *taskRec) bool {
	a := cc.up.actorFor(t.spec.Actor)
	t.actor = a // also of a call that fails at once: messages name it
	cc.objects.holdArgs(t)
	a.pending++
	cr := cc.caller(a, t)
	err := cc.refusesCalls(a)
	switch {
	case err != nil:
		cc.up.fail(t, err)
	case a.opts != nil && a.opts.MaxPendingCalls > 0 && a.pending > int(a.opts.MaxPendingCalls):
		cc.up.fail(t, errs.New(errs.CodePendingCallsLimit, "actor %v (%s) has %d calls pending, its limit is %d: wait for some to end", a.id, a.opts.Func, a.pending-1, a.opts.MaxPendingCalls))
	default:
		cc.sequence(cr, t)
		return true
	}
	return false
}

// refusesCalls gives the reason why an actor takes no calls now, or nil.
func (cc *calls) refusesCalls(a *actorRec) *errs.Error {
	switch {
	case a.state == actor.Dead, a.stop != nil && !cc.recovering:
		return cc.callDied(a)
	case a.state == actor.Restarting && !a.keepsCalls():
		return cc.unavailable(a)
	}
	return nil
}

// sequence gives a call its place behind those of its caller that wait, unless its turn is now.
func (cc *calls) sequence(cr *callerRec, t *taskRec) {
	seq := t.spec.Seq
	if cr.wait.n == 0 && seq <= cr.next && len(t.spec.Args) == 0 {
		cr.advancePast(seq)
		t.flags |= taskTurn
		return
	}
	cr.enqueueBySeq(t)
	cc.timeSequenceGap(cr)
}

// enqueueBySeq puts a call into the line of its caller, by its number.
func (cr *callerRec) enqueueBySeq(t *taskRec) {
	p := cr.wait.tail
	for p != nil && p.spec.Seq > t.spec.Seq {
		p = p.prev
	}
	cr.wait.insertAfter(p, t)
}

// join gives a call that waited for an alias its place at the actor that has the name. Those before it have had theirs.
func (cc *calls) join(t *taskRec) {
	cr := cc.caller(t.actor, t)
	if t.spec.Seq > 0 {
		cr.advancePast(t.spec.Seq - 1)
	}
	t.flags &^= taskTurn
	cr.enqueueBySeq(t)
	cc.releaseInOrder(cr)
}

// resequence takes a call back that had its turn and must wait for an argument that was
// lost; those of its caller that were to follow it wait behind it.
func (cc *calls) resequence(t *taskRec) {
	cr := cc.caller(t.actor, t)
	t.flags &^= taskTurn | taskFront
	cr.enqueueBySeq(t)
	for q := t.actor.queue.head; q != nil; {
		next := q.next
		if q.spec.Caller() == cr.id {
			q.unlist()
			q.flags &^= taskTurn
			cr.enqueueBySeq(q)
		}
		q = next
	}
	cc.touchActor(t.actor)
}

func (cc *calls) caller(a *actorRec, t *taskRec) *callerRec {
	if a.last != nil && a.last.id == t.spec.Caller() {
		return a.last
	}
	cr := a.callers[t.spec.Caller()]
	if cr == nil {
		cr = &callerRec{id: t.spec.Caller(), actor: a, next: 1}
		if cc.lenient || a.forgot {
			cr.next = max(t.spec.Seq, 1)
		}
		if a.callers == nil {
			a.callers = make(map[ids.TaskID]*callerRec)
		} else if len(a.callers) >= manyCallers {
			cc.forgetCallers(a)
		}
		a.callers[cr.id] = cr
	}
	a.last = cr
	return cr
}

// forgetCallers drops the callers that have ended; the sequence of one that comes again may
// begin anywhere.
func (cc *calls) forgetCallers(a *actorRec) {
	for id, cr := range a.callers {
		if t := cc.tasks.task(id); cr.wait.n == 0 && (t == nil || t.state.Terminal()) {
			delete(a.callers, id)
			a.forgot = true
		}
	}
}

// callReady is a call whose arguments are resolved.
func (cc *calls) callReady(t *taskRec) {
	a := t.actor
	if t.flags&taskTurn != 0 {
		if t.flags&taskFront != 0 {
			t.flags &^= taskFront
			a.queue.pushFront(t)
		} else {
			a.queue.pushBack(t)
		}
		cc.touchActor(a)
		return
	}
	if cr := a.callers[t.spec.Caller()]; cr != nil {
		cc.releaseInOrder(cr)
	}
}

// releaseInOrder moves the calls of a caller that are next and ready into the actor's queue.
func (cc *calls) releaseInOrder(cr *callerRec) {
	for t := cr.wait.head; t != nil && t.spec.Seq <= cr.next && t.state == task.PendingActor; t = cr.wait.head {
		t.unlist()
		cr.advancePast(t.spec.Seq)
		t.flags |= taskTurn
		cr.actor.queue.pushBack(t)
		cc.touchActor(cr.actor)
	}
	cc.timeSequenceGap(cr)
}

// hadTurn notes that a call has had its turn, as a worker says that has it: those behind it do not wait for it.
func (cc *calls) hadTurn(t *taskRec) {
	if t.flags&taskTurn != 0 {
		return
	}
	t.flags |= taskTurn
	cr := cc.caller(t.actor, t)
	cr.skip(t.spec.Seq)
	cc.releaseInOrder(cr)
}

// passed notes that a call has ended before the core was rebuilt: of those that the log has, or a driver repeats, none waits for it.
func (cc *calls) passed(spec *wire.TaskSpec) {
	if spec.Kind != wire.TaskActorCall {
		return
	}
	if cr := cc.up.actorFor(spec.Actor).callers[spec.Caller()]; cr != nil {
		cr.skip(spec.Seq)
		cc.releaseInOrder(cr)
	}
}

// closeGaps takes the calls for ended that a log does not have between those that it has: a caller's calls are logged in order, and only ended ones are
// forgotten.
func (cc *calls) closeGaps(a *actorRec) {
	for _, cr := range a.callersWith(func(cr *callerRec) bool { return cr.wait.n > 0 }) {
		seq := cr.next
		for t := cr.wait.head; t != nil; t = t.next {
			for ; seq < t.spec.Seq; seq++ {
				cr.skip(seq)
			}
			seq = t.spec.Seq + 1
		}
		cc.releaseInOrder(cr)
	}
}

// timeSequenceGap bounds the wait for a call that is missing in the sequence.
func (cc *calls) timeSequenceGap(cr *callerRec) {
	gap := cr.wait.head != nil && cr.wait.head.spec.Seq > cr.next
	switch {
	case gap && cr.gap == nil:
		cr.gap = cc.timers.add(cc.now+int64(cc.cfg.SequenceGapTimeout), timer{kind: timerOrder, caller: cr})
	case !gap && cr.gap != nil:
		cc.timers.remove(cr.gap)
		cr.gap = nil
	}
}

// sequenceGapExpired goes on without the missing call: its caller died before it was sent.
func (cc *calls) sequenceGapExpired(cr *callerRec) {
	cr.gap = nil
	if h := cr.wait.head; h != nil {
		cr.next = max(cr.next, h.spec.Seq)
		maps.DeleteFunc(cr.ended, func(seq uint64, _ struct{}) bool { return seq < cr.next })
		cc.releaseInOrder(cr)
	}
}

func (cc *calls) touchActor(a *actorRec) {
	if !a.dirty {
		a.dirty = true
		cc.dirtyActor = append(cc.dirtyActor, a)
	}
}

// pumpAll pushes calls to every actor that changed.
func (cc *calls) pumpAll() {
	for i := 0; i < len(cc.dirtyActor); i++ {
		a := cc.dirtyActor[i]
		a.dirty = false
		cc.pump(a)
		cc.memory.pageOutCalls(&a.queue)
	}
	clear(cc.dirtyActor)
	cc.dirtyActor = cc.dirtyActor[:0]
}

// pump pushes an actor's calls straight to its worker, up to the window. Calls are pushed in
// order: one whose stored arguments are being pinned holds up the rest.
func (cc *calls) pump(a *actorRec) {
	if a.stop != nil {
		cc.up.maybeStop(a)
	}
	if a.unreached != nil {
		cc.failUnreached(a)
	}
	if a.state != actor.Alive || a.lease == nil || a.lease.state == lease.Lost {
		return
	}
	l, window := a.lease, cc.window(a)
	for a.queue.head != nil && len(l.fetching) == 0 && l.lane.Len() < window {
		t := a.queue.head
		if t.pagedOut() {
			cc.memory.pageIn(&a.queue, 0)
			return
		}
		t.unlist()
		if len(t.spec.Args) == 0 {
			t.start++
			cc.leases.push(l, t, nil)
			continue
		}
		switch cc.memory.argsOf(t) {
		case argsAgain:
			cc.tasks.move(t, task.Requeue)
			t.flags |= taskFront
			cc.tasks.workQ = append(cc.tasks.workQ, t)
			return // what follows waits until it is known how long this one does
		case argsHeavy:
			cc.memory.packArgs(t)
			return
		case argsStored:
			t.start++
			cc.leases.pinArgs(t, l)
		default:
			args, _ := cc.memory.argValues(t, nil)
			t.start++
			cc.leases.push(l, t, args)
		}
	}
}

// window bounds the calls pushed to an actor and not done. It is no less than what the actor runs at once: calls that wait for
// another must not keep that one out.
func (cc *calls) window(a *actorRec) int {
	n := int64(cc.cfg.ActorWindow)
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
func (cc *calls) callOver(t *taskRec) {
	a := t.actor
	a.pending--
	if a.stop != nil || a.queue.n > 0 { // it may have held up those behind it
		cc.touchActor(a)
	}
	if t.flags&taskTurn == 0 && t.spec != nil {
		if cr := a.callers[t.spec.Caller()]; cr != nil {
			cr.skip(t.spec.Seq)
			cc.releaseInOrder(cr)
		}
	}
	cc.up.maybeForgetForeign(a)
}

// callAgain puts a call that failed and is to be tried again at the head of its actor's queue.
func (cc *calls) callAgain(t *taskRec) {
	t.lease = nil
	cc.up.requeue(t, true)
}

// returnCalls deals with the calls that were on an actor's lease when it ended, in order.
func (cc *calls) returnCalls(a *actorRec, calls []*taskRec, err *errs.Error) {
	for i := len(calls) - 1; i >= 0; i-- { // from the last, since each goes to the head of the queue
		cc.callLost(a, calls[i], err)
	}
}

// callLost is a call whose actor ended under it. A worker that lives may be running it, or have it on the way.
func (cc *calls) callLost(a *actorRec, t *taskRec, err *errs.Error) {
	cc.memory.abandonArgs(t)
	t.lease = nil
	held := notHeld
	if t.x != nil {
		held, t.x.held = t.x.held, notHeld
	}
	switch {
	case t.state.Terminal():
		cc.tasks.stopTimer(t)
		cc.up.reap(t)
	case t.flags&taskCancelled != 0:
		cc.up.end(t, task.Cancel, t.cancelledError())
	case (a.ended() || a.state == actor.Stopping) && held == heldCulprit:
		cc.up.fail(t, t.x.err)
	case a.ended(), a.state == actor.Stopping:
		cc.up.fail(t, cc.callDied(a))
	case held > heldBegun && a.keepsCalls(), cc.up.charge(t):
		t.ext().err = err
		cc.callAgain(t)
	default:
		cc.up.setCause(a, err, a.hurt)
		cc.up.fail(t, cc.unavailable(a))
	}
}

// failUnavailable fails the calls that wait for an actor that restarts, unless it keeps them.
func (cc *calls) failUnavailable(a *actorRec) {
	if !a.keepsCalls() {
		cc.failWaiting(a)
	}
}

func (cc *calls) failWaiting(a *actorRec) {
	cc.eachQueued(a, func(t *taskRec) { cc.up.fail(t, cc.unavailable(a)) })
}

// failUnreached fails every call that waits for an actor of another job that cannot be reached.
func (cc *calls) failUnreached(a *actorRec) {
	cc.eachQueued(a, func(t *taskRec) { cc.up.fail(t, a.unreached) })
}

// failQueued fails every call that waits for a dead actor.
func (cc *calls) failQueued(a *actorRec) {
	cc.eachQueued(a, func(t *taskRec) { cc.up.fail(t, cc.callDied(a)) })
}

// callersWith are those who have called an actor and are of a kind, in a fixed order.
func (a *actorRec) callersWith(of func(*callerRec) bool) []*callerRec {
	var out []*callerRec
	for _, cr := range a.callers {
		if of(cr) {
			out = append(out, cr)
		}
	}
	slices.SortFunc(out, func(x, y *callerRec) int { return bytes.Compare(x.id[:], y.id[:]) })
	return out
}

// eachQueued calls f, which takes it out, for every call that was not pushed.
func (cc *calls) eachQueued(a *actorRec, f func(*taskRec)) {
	for a.queue.head != nil {
		f(a.queue.head)
	}
	for _, cr := range a.callersWith(func(cr *callerRec) bool { return cr.wait.n > 0 || cr.gap != nil }) {
		for cr.wait.head != nil {
			t := cr.wait.head
			t.unlist()
			t.flags |= taskTurn
			cr.skip(t.spec.Seq)
			f(t)
		}
		cc.timeSequenceGap(cr)
	}
}

func (cc *calls) callDied(a *actorRec) *errs.Error {
	e := &errs.Error{Code: errs.CodeActorDied, Task: a.id.String(), Msg: "actor " + a.id.String() + " is " + a.gone()}
	if a.cause != nil {
		e.Name, e.Cause = a.cause.Name, wrappedCause(a.cause)
		e.Msg += ": " + a.cause.Error()
	}
	return e
}

// gone is how errors call what a dead actor is, or one that takes no more calls.
func (a *actorRec) gone() string {
	if a.stop != nil && !a.ended() {
		return "stopping"
	}
	return "dead"
}

func (cc *calls) unavailable(a *actorRec) *errs.Error {
	e := &errs.Error{Code: errs.CodeActorUnavailable, Task: a.id.String(), Msg: "actor " + a.id.String() + " is restarting; the call may be made again"}
	if a.rec != nil && a.rec.retryAt() > cc.now {
		e.Msg += " in " + (time.Duration(a.rec.retryAt()-cc.now) + 50*time.Millisecond).Truncate(100*time.Millisecond).String()
	}
	if a.cause != nil {
		e.Name = a.cause.Name
		e.Msg += ": " + a.cause.Error()
	}
	return e
}

// callerGone lets nothing wait for a call that a client would have sent, and tells it no more of actors.
func (as *actors) callerGone(cl *clientRec) {
	for _, id := range as.actorIDs() {
		a := as.byID[id]
		a.forgetWatcher(cl)
		for _, cr := range a.callersWith(func(cr *callerRec) bool { return cr.gap != nil }) {
			as.timers.remove(cr.gap)
			as.calls.sequenceGapExpired(cr)
		}
	}
}
