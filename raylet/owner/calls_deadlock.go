package owner

import (
	"slices"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/raylet/owner/actor"
	"mobula/raylet/owner/task"
	"mobula/wire"
)

// A call of an actor that waits for another call of the same actor, where as many wait so as the actor runs at once, waits for
// ever: also by way of other actors and tasks. The wait that closes the circle finds it. The call that can never begin fails, and with it
// the get. What is said to wait is known to, for as long as what it waits for is not there, so whoever is found is stuck
// indeed; what the owner does not know of, as calls of other jobs, is taken to go on.

const maxWaitSteps = 1000 // of a search; a longer circle is not found

// waitsFor notes what a task's get waits for, all of which it needs and until it has it.
func (cc *calls) waitsFor(t *taskRec, m *wire.Blocked) {
	if t.x != nil {
		t.x.waitsFor = nil
	}
	if len(m.WaitsFor) == 0 {
		return
	}
	t.ext().waitsFor = m.WaitsFor
	w := cycleSearch{c: cc, left: maxWaitSteps}
	for _, id := range m.WaitsFor {
		if u := cc.maker(id); u != nil && w.inCycle(u) {
			cc.failDeadlocked(t, u)
			return
		}
	}
}

// maker gives the unfinished task that an object is of, or nil.
func (cc *calls) maker(id ids.ObjectID) *taskRec {
	o := cc.objects.object(id)
	if o == nil || o.rec == nil || o.state.Resolved() || o.rec.state.Terminal() {
		return nil
	}
	return o.rec
}

// cycleSearch asks whether tasks wait in a circle. It holds no conclusion beyond the branch that it was drawn in: what is assumed
// of a task further up may turn out wrong.
type cycleSearch struct {
	c    *calls
	path []*taskRec
	left int
}

// inCycle tells whether a task can never end by itself.
func (w *cycleSearch) inCycle(t *taskRec) bool {
	if slices.Contains(w.path, t) {
		return true
	}
	if w.left--; w.left <= 0 || t.flags&taskCancelled != 0 || t.state.Terminal() {
		return false
	}
	w.path = append(w.path, t)
	defer func() { w.path = w.path[:len(w.path)-1] }()
	switch t.state {
	case task.RunningInGet:
		return t.x != nil && slices.ContainsFunc(t.x.waitsFor, w.objectInCycle)
	case task.PendingArgs:
		return t.spec != nil && slices.ContainsFunc(t.spec.Args, func(a wire.Arg) bool { return !a.Ref.IsZero() && w.objectInCycle(a.Ref) })
	case task.PendingActor, task.Submitted:
		return t.isCall() && w.noConcurrencySlot(t)
	}
	return false
}

func (w *cycleSearch) objectInCycle(id ids.ObjectID) bool {
	u := w.c.maker(id)
	return u != nil && w.inCycle(u)
}

// noConcurrencySlot tells whether every place of its actor that a call could begin in is taken by one that is stuck.
func (w *cycleSearch) noConcurrencySlot(t *taskRec) bool {
	a := t.actor.real()
	if a.rec == nil || a.opts == nil {
		return false // another job's
	}
	if a.state != actor.Alive || a.lease == nil {
		return a.rec.state == task.RunningInGet && w.inCycle(a.rec)
	}
	group := t.concurrencyGroup()
	places := a.concurrencyLimit(group)
	for _, x := range a.lease.lane.All() {
		if places == 0 {
			break
		}
		if x != t && x.state == task.RunningInGet && x.concurrencyGroup() == group && w.inCycle(x) {
			places--
		}
	}
	return places == 0 && a.concurrencyLimit(group) > 0
}

// failDeadlocked fails the call that a get waits for in vain.
func (cc *calls) failDeadlocked(t, u *taskRec) {
	for u.state == task.RunningInGet || u.state == task.PendingArgs { // to where the circle can be opened: a call that has not begun
		next := cc.nextInCycle(u)
		if next == nil || next == u {
			return
		}
		u = next
	}
	if u.state != task.PendingActor && u.state != task.Submitted || !u.isCall() {
		return
	}
	err := errs.New(errs.CodeDeadlock, "%s waits for %s of actor %v, which cannot begin: all that the actor runs at once waits for it. Let the method return the reference, "+
		"raise MaxConcurrency, or put one of the methods into a concurrency group", t.name(), u.name(), u.actor.id)
	err.Task = u.id().String()
	if l := u.lease; l != nil && u.state == task.Submitted {
		cc.leases.toLease(l, &wire.CancelTask{Task: u.id()})
		l.lane.take(u.id())
		u.lease = nil
		cc.leases.laneMoved(l)
	} else {
		cc.up.withdraw(u)
	}
	cc.up.fail(u, err)
}

// nextInCycle gives the task that one which is stuck waits for.
func (cc *calls) nextInCycle(t *taskRec) *taskRec {
	list := []ids.ObjectID(nil)
	if t.state == task.RunningInGet && t.x != nil {
		list = t.x.waitsFor
	} else if t.spec != nil {
		for _, a := range t.spec.Args {
			if !a.Ref.IsZero() {
				list = append(list, a.Ref)
			}
		}
	}
	for _, id := range list {
		w := cycleSearch{c: cc, left: maxWaitSteps}
		if u := cc.maker(id); u != nil && w.inCycle(u) {
			return u
		}
	}
	return nil
}
