package owner

import (
	"mobula/wire"
	"slices"

	"mobula/internal/ids"
	"mobula/raylet/owner/actor"
	"mobula/raylet/owner/task"
)

const maxWaitSteps = 1000 // of a search; a longer circle is not found

// vertex is a task or a call in the search. The owner may not know it, if it went straight: then need is what its caller has said of it.
type vertex struct {
	id   ids.TaskID
	rec  *taskRec // nil: the owner does not know it
	need *wire.Need
	by   ids.ClientID // who has made it, if it went straight
}

func vertexOf(t *taskRec) vertex {
	v := vertex{id: t.id(), rec: t}
	if t.isElsewhere() {
		v.by = t.x.adopted.by
	}
	return v
}

// straight tells whether another process has the call, and only that knows how far it is.
func (v vertex) straight() bool { return v.rec == nil || v.rec.isElsewhere() }

func (v vertex) name() string {
	if v.rec != nil {
		return v.rec.name()
	}
	return v.need.Name
}

func (v vertex) actor() ids.ActorID {
	if v.rec != nil {
		return v.rec.actor.id
	}
	return v.need.Actor
}

func (v vertex) group() string {
	if v.rec != nil {
		return v.rec.concurrencyGroup()
	}
	return v.need.Group
}

// notBegun tells of a call that is stuck whether it waits for its turn.
func (v vertex) notBegun(d *deadlocks) bool {
	if v.straight() {
		return d.told[v.id] == nil
	}
	return v.rec.isCall() && (v.rec.state == task.PendingActor || v.rec.state == task.Submitted)
}

// cycleSearch asks whether tasks wait in a circle. It holds no conclusion beyond the branch that it was drawn in: what is assumed
// of a task further up may turn out wrong.
type cycleSearch struct {
	d     *deadlocks
	round uint64      // only told waits count that were confirmed since; 0: all do
	told  []*toldWait // which it has met
	path  []ids.TaskID
	left  int
}

// stuck tells whether a task can never end by itself.
func (w *cycleSearch) stuck(v vertex) bool {
	if slices.Contains(w.path, v.id) {
		return true
	}
	if w.left--; w.left <= 0 || v.rec != nil && (v.rec.flags&taskCancelled != 0 || v.rec.state.Terminal()) {
		return false
	}
	w.path = append(w.path, v.id)
	defer func() { w.path = w.path[:len(w.path)-1] }()
	if tw := w.d.told[v.id]; tw != nil {
		if tw.confirmed < w.round || !w.d.holdsPlace(tw) {
			return false
		}
		w.told = append(w.told, tw)
		return slices.ContainsFunc(w.d.needs(v), w.stuck)
	}
	if v.straight() {
		a := w.d.actors.byID[v.actor()]
		return a != nil && w.noPlace(a, v)
	}
	switch t := v.rec; t.state {
	case task.RunningInGet, task.PendingArgs:
		return slices.ContainsFunc(w.d.needs(v), w.stuck)
	case task.PendingActor, task.Submitted:
		return t.isCall() && w.noPlace(t.actor, v)
	}
	return false
}

// noPlace tells whether every place of an actor that a call could begin in is taken by one that is stuck.
func (w *cycleSearch) noPlace(a *actorRec, v vertex) bool {
	a = a.real()
	if a.rec == nil || a.opts == nil {
		return false // another job's
	}
	if a.state != actor.Alive || a.lease == nil {
		return a.rec.state == task.RunningInGet && w.stuck(vertexOf(a.rec))
	}
	group := v.group()
	places := a.concurrencyLimit(group)
	if places == 0 {
		return false
	}
	for _, x := range a.lease.lane.All() {
		if x.id() != v.id && x.state == task.RunningInGet && x.concurrencyGroup() == group && w.stuck(vertexOf(x)) {
			if places--; places == 0 {
				return true
			}
		}
	}
	for _, tw := range w.d.toldOf[a.id] {
		if x := w.d.tasks.task(tw.m.Task); x != nil && x.lease == a.lease {
			continue // it was counted
		}
		if tw.m.Task != v.id && tw.m.Group == group && w.stuck(w.d.waiter(tw)) {
			if places--; places == 0 {
				return true
			}
		}
	}
	return false
}
