package owner

import (
	"fmt"

	"mobula/internal/direct"
	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/raylet/owner/actor"
	"mobula/raylet/owner/task"
	"mobula/wire"
)

// adoptedCall is what a task has that is a call of which the owner was told, since a reference to its result has left the process that made it. While it
// is elsewhere that process has it, or when that has ended the actor's: it waits (task.PendingArgs) for nothing that the owner would see. It is
// pending for its actor, holds what its spec refers to, and can be asked for as any task.
//
// The log has nothing of it until its end is known, or it is the owner's to make: a rebuilt owner must not make what another process has under way. Of
// an end the log has the results first, then the submission: one without the other is nothing. A cancel of it is passed on to who has it; with force it ends
// here at once.
//
// A stream is told of before it is sent, since its items are the owner's: straight_streams.go.
type adoptedCall struct {
	elsewhere bool
	logged    bool         // the log has the submission, with that it is elsewhere
	counted   bool         // it had ended before the owner was told of it: its process counts it, and tells what is recorded of it
	by        ids.ClientID // who has told of it last
}

// isElsewhere tells whether another process has the call, and the owner waits for what it comes to.
func (t *taskRec) isElsewhere() bool {
	return t.x != nil && t.x.adopted != nil && t.x.adopted.elsewhere
}

// isCounted tells whether another process counts the task, and tells what is recorded of it.
func (t *taskRec) isCounted() bool {
	return t.x != nil && t.x.adopted != nil && t.x.adopted.counted
}

// leaveElsewhere makes a call a task like any other.
func (ts *tasks) leaveElsewhere(t *taskRec) {
	t.x.adopted.elsewhere = false
	ts.elsewhere--
}

// adopt takes a call, or what of it has changed. One that was submitted as a task, by an earlier attempt of its caller or to a core before this one, is none
// to be told of.
func (st *straight) adopt(cl *clientRec, m *wire.Adopt) {
	if m.Spec.Kind != wire.TaskActorCall {
		st.refer(cl, m)
		return
	}
	name := ids.ObjectID{Task: m.Spec.ID}
	known, at := st.tasks.findOrPlace(&name)
	var t *taskRec
	if known == nil {
		t = st.newAdopted(cl, m.Spec, at, m.Outcome != nil)
	} else {
		t = known.rec
	}
	ad := t.ext().adopted
	switch {
	case ad == nil:
		st.life.giveReturns(cl, t)
		st.toClient(cl, &wire.Adopted{Task: m.Spec.ID})
		return
	case ad.by != cl.id:
		ad.by = cl.id
		st.life.giveReturns(cl, t)
	}
	if t.isElsewhere() {
		t.tries = max(t.tries, uint32(max(m.Tries, 0))) // the owner may have taken one
	}
	st.tell(direct.Adopting{Client: cl.id, Call: t.id(), Actor: t.actor.id, Order: m.Order, Channel: direct.Channel(m.Channel), No: m.No, Retries: retries(t), Tries: m.Tries,
		Outcome: outcomeOf(m.Outcome)})
}

// newAdopted makes the record of a call that is elsewhere. Among the calls that the owner makes for its caller it has no number: it is made
// behind those that are there.
func (st *straight) newAdopted(cl *clientRec, spec *wire.TaskSpec, at place, counted bool) *taskRec {
	own := *spec
	own.Seq = 0
	refused := st.life.refuse(&own)
	if own.Opts.NumReturns > st.life.returnsLimit() {
		own = *withOneReturn(&own)
	}
	t := st.life.newTask(&own, at, &adoptedCall{elsewhere: true, counted: counted})
	if !counted {
		st.stats.Submitted++
	}
	t.ret0.noteMaker(cl)
	by := st.tasks.task(own.Parent)
	t.markDetached(by)
	t.detachedDescendant = t.detachedDescendant || by == nil && cl.hostsDetached()
	st.enterElsewhere(t, by)
	if t.nret == wire.Streaming {
		st.logElsewhere(t)
	}
	if refused != nil && refused.Code != errs.CodeDeadline { // what it came to in time its process knows
		st.life.fail(t, refused)
	}
	return t
}

// enterElsewhere has a call's actor and arguments wait for it. by has made it; nil: it is not known any more.
func (st *straight) enterElsewhere(t, by *taskRec) {
	t.flags |= taskTurn
	st.life.noteParent(t, by)
	t.actor = st.actors.actorFor(t.spec.Actor)
	t.actor.pending++
	st.objects.holdArgs(t)
}

// outcomeOf is what a call came to, as the core of ways passes it on.
func outcomeOf(o *wire.CallOutcome) *direct.Outcome {
	if o == nil {
		return nil
	}
	return &direct.Outcome{Value: o, Err: o.Err}
}

// told takes what the process of an actor says of a call whose caller is gone.
func (st *straight) told(cl *clientRec, m *wire.Told) {
	if m.NeverCame {
		st.tell(direct.NeverCame{Channel: direct.Channel(m.Channel), No: m.No})
		return
	}
	out := outcomeOf(m.Outcome)
	if out == nil && m.Said == wire.SaidNothing {
		out = &direct.Outcome{Err: errs.New(errs.CodeProtocol, "%s says that it has a call's outcome, and not which", cl.workerName())}
	}
	st.tell(direct.Told{Channel: direct.Channel(m.Channel), No: m.No, Said: direct.Said(m.Said), Outcome: out})
}

// resolveCall ends a call as the core of ways has it from who knows.
func (st *straight) resolveCall(e *direct.WaysEffect) {
	t := st.tasks.task(e.Call)
	if t == nil {
		return
	}
	o, _ := e.Outcome.Value.(*wire.CallOutcome)
	if o == nil {
		o = &wire.CallOutcome{Err: e.Outcome.Err}
	}
	st.comeTo(t, &clientRec{peer: st.cfg.Job}, o) // whose store is that of the job's own node, as of all that are told here
}

// comeTo ends a call that is elsewhere, as an attempt ends. Of any other, the outcome is of an attempt that was given up.
func (st *straight) comeTo(t *taskRec, cl *clientRec, o *wire.CallOutcome) {
	err := o.Err
	d := &wire.Done{Task: t.id(), Attempt: t.start, Results: o.Results, Items: o.Items, Err: err}
	if !t.isElsewhere() {
		st.values.dropResults(cl, d)
		return
	}
	switch {
	case t.nret == wire.Streaming && st.makesAgain(t, err):
		return
	case err != nil:
	case t.nret == wire.Streaming:
		err = st.endStream(t, d.Items)
	default:
		err = misses(t, d)
	}
	if st.cfg.Transitions && o.Ran != nil && !t.isCounted() {
		st.changes = append(st.changes, ranAs(t.spec, t.tries+1, o.Ran))
	}
	if err == nil {
		st.life.reach(t)
		st.life.finish(cl, t, d)
		return
	}
	st.values.dropResults(cl, d)
	t.x.err = err
	if t.flags&taskCancelled != 0 || err.Code == errs.CodeCancelled {
		st.life.end(t, task.Cancel, t.cancelledError())
	} else {
		st.life.fail(t, err)
	}
}

// misses is what is wrong with the results of a call; nil: nothing is.
func misses(t *taskRec, d *wire.Done) *errs.Error {
	if len(d.Results) != int(t.nret) {
		return errs.New(errs.CodeReturnMismatch, "%s gave %d results where its options say %d", t.name(), len(d.Results), t.nret)
	}
	if i := unsealed(t, d); i >= 0 {
		return errs.New(errs.CodeObjectLost, "return %d of %s was lost by the store as it was made", i, t.name())
	}
	return nil
}

// makeCall has the owner make a call that was elsewhere, behind those that wait for the actor. The log has it from now on.
func (st *straight) makeCall(e *direct.WaysEffect) {
	t := st.tasks.task(e.Call)
	if t == nil || !t.isElsewhere() || st.ended { // or it ends with the job
		return
	}
	st.makeHere(t, uint32(max(e.Tries, 0)))
}

// makeHere makes a call the owner's that was elsewhere.
func (st *straight) makeHere(t *taskRec, tries uint32) {
	st.tasks.leaveElsewhere(t)
	st.followAlias(t)
	t.tries, t.start = tries, max(t.start, tries)
	if !t.x.adopted.logged {
		st.journal.logSubmit(t, ids.ActorID{})
	}
	if t.tries > 0 || t.start > 0 || t.x.adopted.logged {
		st.journal.logRetry(t)
	}
	t.flags &^= taskTurn
	switch a := t.actor; {
	case t.flags&taskCancelled != 0:
		st.life.end(t, task.Cancel, t.cancelledError())
	case a.ended(), a.state == actor.Stopping:
		st.life.fail(t, st.calls.callDied(a))
	case a.state == actor.Restarting && !a.keepsCalls():
		st.life.fail(t, st.calls.unavailable(a))
	default:
		if t.spec.Deadline != 0 {
			st.tasks.setTimer(t, t.spec.Deadline, timerDeadline)
		}
		st.calls.sequence(st.calls.caller(a, t), t)
		st.life.await(t)
	}
}

// followAlias gives a call to the actor that has the name of the one that it is of.
func (st *straight) followAlias(t *taskRec) {
	if to := t.actor.real(); to != t.actor {
		t.actor.pending--
		to.pending++
		t.actor = to
	}
}

// submittedAdopted follows up on a submission of a call that was adopted: its process has found that it goes by the owner. It has a number among those that
// go so, which none behind it is to wait for.
func (st *straight) submittedAdopted(cl *clientRec, spec *wire.TaskSpec) {
	if st.ways == nil || spec.Kind != wire.TaskActorCall || !st.ways.Knows(spec.ID) {
		return
	}
	t := st.tasks.task(spec.ID)
	if t == nil {
		return
	}
	if t.isElsewhere() {
		own := *t.spec
		own.Seq = spec.Seq
		t.spec = &own
	}
	st.tell(direct.Submitted{Client: cl.id, Call: t.id(), Actor: t.actor.id, Tries: int32(t.tries)})
	if t.isElsewhere() || t.state.Terminal() {
		cr := st.calls.caller(t.actor, t)
		cr.skip(spec.Seq)
		st.calls.releaseInOrder(cr)
	}
}

// validate checks the calls that are elsewhere, and that nothing is left to be told.
func (st *straight) validate(*recount) error {
	n := 0
	for id, t := range st.tasks.all() {
		if !t.isElsewhere() {
			continue
		}
		known := st.recovering || st.ways != nil && st.ways.Knows(id) // whose it is, it may not have been said yet
		if n++; t.state != task.PendingArgs || t.deps > 0 || t.in != nil || !known {
			return fmt.Errorf("task %v is elsewhere, and %v, waits for %d arguments, is known: %v", id, t.state, t.deps, known)
		}
	}
	if n != st.tasks.elsewhere || len(st.todo)+len(st.tasks.settled)+len(st.tasks.unwanted) > 0 {
		return fmt.Errorf("%d tasks are elsewhere, counted %d; %d effects, %d ends and %d cancels are to be told", n, st.tasks.elsewhere, len(st.todo), len(st.tasks.settled), len(st.tasks.unwanted))
	}
	return nil
}
