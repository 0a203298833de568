package owner

import (
	"slices"

	"mobula/internal/direct"
	"mobula/internal/ids"
	"mobula/wire"
)

// What calls that go straight have made. The owner does not know such a call, but the process in which it runs says Runs before the call makes something of which the
// owner is told, and Ran when it has ended. So the owner knows whose children those are as long as it would know it of a task: for a cancel with what a call has made,
// and for the actor that a failure escalates to.
//
// Each child is one's to cancel. Those of which the owner was told are the owner's: it goes through them where a task is cancelled that it knows, or where a process
// says CancelMade of a call that runs there. The others are in the process that makes them: the owner says CancelMade to the process of a task that runs. A call that
// is elsewhere is its process' to cancel, and that of its actor says CancelMade then.

// running is a call that has come straight to the process in which it runs, and has made something.
type running struct {
	actor ids.ActorID
	by    ids.ClientID
}

// unwanted is a call that is elsewhere and was cancelled.
type unwanted struct {
	call ids.TaskID
	wish direct.Wish
}

// startsMaking takes note of a call that runs in a client's process.
func (ts *tasks) startsMaking(m *wire.Runs, by ids.ClientID) {
	if ts.making == nil {
		ts.making = make(map[ids.TaskID]running)
	}
	ts.making[m.Task] = running{actor: m.Actor, by: by}
}

// stopsMaking forgets a call that runs no more, if it is of this client.
func (ts *tasks) stopsMaking(call ids.TaskID, by ids.ClientID) {
	if r, ok := ts.making[call]; !ok || r.by != by {
		return
	}
	delete(ts.making, call)
	if t := ts.task(call); t == nil || t.flags&taskHasChildren == 0 {
		delete(ts.children, call)
	}
}

// makerGone forgets what ran in a process that has ended.
func (ts *tasks) makerGone(by ids.ClientID) {
	for call, r := range ts.making {
		if r.by == by {
			ts.stopsMaking(call, by)
		}
	}
}

// isMaking tells whether a call runs that has gone straight, and has made something.
func (ts *tasks) isMaking(call ids.TaskID) bool {
	_, ok := ts.making[call]
	return ok
}

// closeChildren drops the children of those that a rebuilt core has not heard of: until all have spoken, it keeps them of all.
func (ts *tasks) closeChildren() {
	for parent := range ts.children {
		switch t := ts.task(parent); {
		case t != nil && !t.state.Terminal():
			t.flags |= taskHasChildren
		case !ts.isMaking(parent):
			delete(ts.children, parent)
		}
	}
}

// parentActor is the actor whose call or constructor has made what spec says; zero: there is none. by is the record of that call, if there is one.
func (lf *life) parentActor(spec *wire.TaskSpec, by *taskRec) ids.ActorID {
	if by != nil {
		return actorOf(by)
	}
	if r, ok := lf.tasks.making[spec.Parent]; ok {
		if a := lf.actors.byID[r.actor]; a != nil && a.rec != nil {
			return a.id
		}
	}
	return ids.ActorID{}
}

// cancelMade cancels what a task has made of which the owner was told.
func (lf *life) cancelMade(of ids.TaskID, w direct.Wish) {
	lf.cancelAll(slices.Clone(lf.tasks.children[of]), &wire.Cancel{Force: w.Force, Recursive: true, Insist: w.Insist})
}

// passCancel passes a cancel on to the processes that have a part in it.
func (lf *life) passCancel(t *taskRec, m *wire.Cancel) {
	w := direct.Wish{Force: m.Force, Recursive: m.Recursive, Insist: m.Insist}
	switch {
	case !lf.cfg.StraightCalls:
	case t.isElsewhere():
		lf.tasks.unwanted = append(lf.tasks.unwanted, unwanted{t.id(), w})
	case m.Recursive && t.isCall() && t.state.OnWorker() && t.lease.worker.straight:
		lf.toClient(t.lease.worker, &wire.CancelMade{Task: t.id(), Wish: wire.Wish(w)})
	}
}
