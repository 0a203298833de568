package owner

import (
	"slices"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/raylet/owner/task"
	"mobula/wire"
)

// A call of an actor that waits for another call of the same actor, where as many wait so as the actor runs at once, waits for
// ever: also by way of other actors and tasks. The wait that closes the circle finds it (deadlocks_search.go). The call that can never begin fails, and with it
// the get. What the owner is asked for is known to be waited for as long as it is not there, so whoever is found is stuck
// indeed; waits that it was only told of it asks about again (deadlocks_told.go). What it does not know of, as calls of other jobs, is taken to go on.

// deadlocks finds calls that wait in a circle.
type deadlocks struct {
	*step
	tasks   *tasks
	objects *objects
	clients *clients
	leases  *leases
	actors  *actors
	life    *life
	told    map[ids.TaskID]*toldWait    // by who waits
	toldOf  map[ids.ActorID][]*toldWait // by whose call waits
	round   uint64                      // of questions
}

func newDeadlocks(s *step, ts *tasks, os *objects, cs *clients, ls *leases, as *actors, lf *life) *deadlocks {
	return &deadlocks{step: s, tasks: ts, objects: os, clients: cs, leases: ls, actors: as, life: lf, told: make(map[ids.TaskID]*toldWait), toldOf: make(map[ids.ActorID][]*toldWait)}
}

// waitsFor notes what a task's get waits for, all of which it needs and until it has it.
func (d *deadlocks) waitsFor(t *taskRec, m *wire.Blocked) {
	if t.x != nil {
		t.x.waitsFor = nil
	}
	if len(m.WaitsFor) == 0 {
		return
	}
	t.ext().waitsFor = m.WaitsFor
	for _, id := range m.WaitsFor {
		if v, ok := d.makerOf(id); ok && d.suspect(t.name(), v, 0) {
			return
		}
	}
}

// suspect looks whether what is waited for can never end by itself. If so, and if all that says so holds for sure, it opens the circle. A round is that of the
// questions which are answered; 0: none was asked.
func (d *deadlocks) suspect(waiter string, v vertex, round uint64) bool {
	w := cycleSearch{d: d, round: round, left: maxWaitSteps}
	switch {
	case !w.stuck(v):
		return false
	case round == 0 && len(w.told) > 0:
		d.confirm(w.told)
	default:
		d.open(waiter, v, round)
	}
	return true
}

// open opens a circle where it can be: at a call that has not begun. Where all in it run it is left as it is: another goroutine of one may let it end.
func (d *deadlocks) open(waiter string, v vertex, round uint64) {
	passed := make(map[ids.TaskID]bool)
	for ok := true; ok && !passed[v.id]; {
		if v.notBegun(d) {
			d.cannotBegin(waiter, v)
			return
		}
		passed[v.id] = true
		waiter = v.name()
		v, ok = d.next(v, round)
	}
}

// next is what somebody who is stuck waits for.
func (d *deadlocks) next(v vertex, round uint64) (vertex, bool) {
	for _, n := range d.needs(v) {
		w := cycleSearch{d: d, round: round, left: maxWaitSteps}
		if w.stuck(n) {
			return n, true
		}
	}
	return vertex{}, false
}

// cannotBegin fails a call that is waited for in vain.
func (d *deadlocks) cannotBegin(waiter string, v vertex) {
	err := errs.New(errs.CodeDeadlock, "%s waits for %s of actor %v, which cannot begin: all that the actor runs at once waits for it. Let the method return the reference, "+
		"raise MaxConcurrency, or put one of the methods into a concurrency group", waiter, v.name(), v.actor())
	err.Task = v.id.String()
	if v.straight() {
		d.tellCannotBegin(v, err)
		return
	}
	u := v.rec
	if l := u.lease; l != nil && u.state == task.Submitted {
		d.leases.toLease(l, &wire.CancelTask{Task: u.id()})
		l.lane.take(u.id())
		u.lease = nil
		d.leases.laneMoved(l)
	} else {
		d.life.withdraw(u)
	}
	d.life.fail(u, err)
}

// makerOf is the unfinished task that an object is of.
func (d *deadlocks) makerOf(id ids.ObjectID) (vertex, bool) {
	o := d.objects.object(id)
	if o == nil || o.rec == nil || o.state.Resolved() || o.rec.state.Terminal() {
		return vertex{}, false
	}
	return vertexOf(o.rec), true
}

// needs is what somebody who runs waits for, or a task before it runs.
func (d *deadlocks) needs(v vertex) (out []vertex) {
	if tw := d.told[v.id]; tw != nil {
		for i := range tw.m.Needs {
			if n, ok := d.needed(tw, &tw.m.Needs[i]); ok {
				out = append(out, n)
			}
		}
		return out
	}
	var list []ids.ObjectID
	switch {
	case v.straight():
	case v.rec.state == task.RunningInGet && v.rec.x != nil:
		list = v.rec.x.waitsFor
	case v.rec.state == task.PendingArgs && v.rec.spec != nil:
		for i := range v.rec.spec.Args {
			if ref := v.rec.spec.Args[i].Ref; !ref.IsZero() {
				list = append(list, ref)
			}
		}
	}
	for _, id := range list {
		if n, ok := d.makerOf(id); ok {
			out = append(out, n)
		}
	}
	return slices.Clip(out)
}
