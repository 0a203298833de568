package directory

import (
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/internal/testkit"
	"mobula/raylet/owner/actor"
)

// world is a node with jobs, its directory and the control plane's table, in which anything may be slow, and the directory or the whole node may be
// lost at any moment.
type world struct {
	t      *rapid.T
	core   *Core
	inbox  []Event  // of the directory
	calls  []Effect // of the table, one after the other
	timers []Event
	table  map[Name]ids.ActorID
	owners map[ids.JobID]*fakeOwner
	last   ids.JobID
}

// fakeOwner does what an owner does about names; what it has is in its log.
type fakeOwner struct {
	job    ids.JobID
	inbox  []Msg
	actors map[ids.ActorID]*fakeActor
	sees   map[ids.ActorID]*Place // of other jobs' actors that it looks for; nil: not told
}

type fakeActor struct {
	state actor.State // Claiming, Alive or Dead
	name  string
}

func (w *world) take(effects []Effect) {
	for _, e := range effects {
		switch e := e.(type) {
		case ToOwner:
			if o := w.owners[e.Job]; o != nil {
				o.inbox = append(o.inbox, e.Msg)
			}
		case After:
			w.timers = append(w.timers, e.Ev)
		case Warn:
		default:
			w.calls = append(w.calls, e)
		}
	}
}

func (w *world) send(ev Event) { w.inbox = append(w.inbox, ev) }

// call has the table make the next call, or fail it.
func (w *world) call(fails bool) {
	e := w.calls[0]
	w.calls = w.calls[1:]
	var err *errs.Error
	if fails {
		err = errs.New(errs.CodeDeadline, "slow")
	}
	switch e := e.(type) {
	case ClaimRow:
		name := nameOf(e.Opts)
		holder, taken := w.table[name]
		switch {
		case err != nil: // nobody knows who has it
			holder = ids.ActorID{}
		case !taken:
			w.table[name] = e.Actor
		case holder != e.Actor:
			err = errs.New(errs.CodeNameTaken, "taken")
		}
		w.send(Claimed{Claim: e.Claim, Holder: holder, Err: err})
	case FreeRow:
		if err == nil && w.table[e.Name] == e.Actor {
			delete(w.table, e.Name)
		}
		w.send(Freed{FreeRow: e, Err: err})
	case ListRows:
		l := Listed{}
		for _, name := range []string{"a", "b"} {
			if id, taken := w.table[Name{"prod", name}]; taken {
				l.Rows = append(l.Rows, Row{id, named(name)})
			}
		}
		w.send(l) // one that fails leaves names of the dead, which the next life finds
	}
}

func (w *world) say(o *fakeOwner, id ids.ActorID, a *fakeActor) {
	switch a.state {
	case actor.Claiming:
		w.send(Claim{Job: o.job, Actor: id, Opts: named(a.name)})
	case actor.Alive:
		w.send(Publish{Place{Actor: id, State: actor.Alive, Opts: named(a.name)}})
	}
}

func (w *world) hear(o *fakeOwner) {
	m := o.inbox[0]
	o.inbox = o.inbox[1:]
	switch m := m.(type) {
	case NameClaimed:
		a := o.actors[m.Actor]
		granted := m.Err == nil && m.Existing.IsZero()
		switch {
		case a != nil && a.state == actor.Claiming && granted:
			a.state = actor.Alive
			w.say(o, m.Actor, a)
		case a != nil && a.state == actor.Claiming:
			a.state = actor.Dead
		case granted && (a == nil || a.state == actor.Dead):
			w.send(Release{Actor: m.Actor})
		}
	case NameHeld:
		if a := o.actors[m.Actor]; a == nil || a.state == actor.Dead {
			w.send(Release{Actor: m.Actor, Opts: m.Opts})
		}
	case Sought:
		if a := o.actors[m.Actor]; a == nil || a.state == actor.Dead {
			w.send(Publish{Place{Actor: m.Actor, State: actor.Dead}})
		}
	case Place:
		if _, looks := o.sees[m.Actor]; looks {
			o.sees[m.Actor] = &m
		}
	case Kill:
		if a := o.actors[m.Actor]; a != nil {
			w.dies(m.Actor, a)
		}
	case Restate:
		w.restate(o)
	}
}

func (w *world) dies(id ids.ActorID, a *fakeActor) {
	if a.state == actor.Alive {
		w.send(Release{Actor: id, Opts: named(a.name)})
	}
	a.state = actor.Dead // one that is claiming has nothing to release yet
}

// panics loses the message that an owner has now, and the core with it; what it has is in its log.
func (w *world) panics(o *fakeOwner) {
	if len(o.inbox) > 0 {
		o.inbox = o.inbox[1:]
	}
	w.restate(o)
	w.send(OwnerRestarted{o.job})
}

func (w *world) restate(o *fakeOwner) {
	for _, id := range sorted(o.actors) {
		w.say(o, id, o.actors[id])
	}
	for _, id := range sorted(o.sees) {
		w.send(Locate{Job: o.job, Actor: id})
	}
}

func sorted[V any](m map[ids.ActorID]V) []ids.ActorID {
	return slices.SortedFunc(maps.Keys(m), func(a, b ids.ActorID) int { return slices.Compare(a[:], b[:]) })
}

func (w *world) anyOwner() *fakeOwner {
	return w.owners[rapid.SampledFrom(slices.Sorted(maps.Keys(w.owners))).Draw(w.t, "job")]
}

// act has the jobs do something.
func (w *world) act() {
	if len(w.owners) == 0 || len(w.owners) < 3 && rapid.IntRange(0, 9).Draw(w.t, "new job") == 0 {
		w.last++
		w.owners[w.last] = &fakeOwner{job: w.last, actors: make(map[ids.ActorID]*fakeActor), sees: make(map[ids.ActorID]*Place)}
		w.send(JobBegan{w.last})
		return
	}
	o := w.anyOwner()
	switch rapid.IntRange(0, 12).Draw(w.t, "act") {
	case 0: // it ends
		delete(w.owners, o.job)
		w.send(JobEnded{o.job})
	case 1, 2, 3:
		id := actorOf(o.job, uint64(len(o.actors)))
		a := &fakeActor{state: actor.Claiming, name: rapid.SampledFrom([]string{"a", "b"}).Draw(w.t, "name")}
		o.actors[id] = a
		w.say(o, id, a)
	case 4, 5, 6:
		for _, id := range sorted(o.actors) {
			w.dies(id, o.actors[id])
		}
	case 7:
		w.panics(o)
	case 8, 9: // it kills another job's actor, and wants the name itself
		for _, name := range []string{"a", "b"} {
			if id, taken := w.table[Name{"prod", name}]; taken && id.Job() != o.job {
				w.send(Kill{Actor: id})
				own := actorOf(o.job, uint64(len(o.actors)))
				o.actors[own] = &fakeActor{state: actor.Claiming, name: name}
				w.say(o, own, o.actors[own])
			}
		}
	default:
		for _, name := range []string{"a", "b"} {
			if id, taken := w.table[Name{"prod", name}]; taken && id.Job() != o.job && o.sees[id] == nil {
				o.sees[id] = nil
				w.send(Locate{Job: o.job, Actor: id})
			}
		}
	}
}

func (w *world) crash() {
	w.core, w.timers = New(0, "n1"), nil
	w.take(w.core.Step(0, Rebuild{Jobs: slices.Collect(maps.Keys(w.owners))}))
}

// kill loses what is in memory. The server may have made a call that nobody hears the answer of.
func (w *world) kill() {
	for len(w.calls) > 0 && rapid.Bool().Draw(w.t, "written") {
		w.call(false)
	}
	w.core, w.inbox, w.calls, w.timers = New(0, "n1"), nil, nil, nil
	for _, job := range slices.Sorted(maps.Keys(w.owners)) {
		w.owners[job].inbox = nil
		w.send(JobBegan{job})
	}
	w.send(Reconcile{})
	for _, job := range slices.Sorted(maps.Keys(w.owners)) {
		w.restate(w.owners[job])
	}
}

// step has one thing happen that is under way; false: nothing is.
func (w *world) step(pick func(n int) int, fails bool) bool {
	var can []func()
	if len(w.inbox) > 0 {
		can = append(can, func() {
			ev := w.inbox[0]
			w.inbox = w.inbox[1:]
			w.take(w.core.Step(0, ev))
		})
	}
	if len(w.calls) > 0 {
		can = append(can, func() { w.call(fails) })
	}
	if len(w.timers) > 0 {
		can = append(can, func() { w.send(w.timers[0]); w.timers = w.timers[1:] })
	}
	for _, job := range slices.Sorted(maps.Keys(w.owners)) {
		if o := w.owners[job]; len(o.inbox) > 0 {
			can = append(can, func() { w.hear(o) })
		}
	}
	if len(can) == 0 {
		return false
	}
	can[pick(len(can))]()
	return true
}

func (w *world) check() {
	for name, id := range w.table {
		o := w.owners[id.Job()]
		if o == nil || o.actors[id] == nil || o.actors[id].state != actor.Alive {
			w.t.Fatalf("the name %q is held for actor %v, which does not live", name.Name, id)
		}
	}
	for _, o := range w.owners {
		for id, a := range o.actors {
			if a.state == actor.Claiming || a.state == actor.Alive && w.table[Name{"prod", a.name}] != id {
				w.t.Fatalf("actor %v is %v, and its name %q is held for %v", id, a.state, a.name, w.table[Name{"prod", a.name}])
			}
		}
		for id, at := range o.sees {
			lives := w.owners[id.Job()] != nil && w.owners[id.Job()].actors[id].state == actor.Alive
			if at == nil || (at.State == actor.Alive) != lives {
				w.t.Fatalf("job %v was last told %+v of actor %v, which lives: %v", o.job, at, id, lives)
			}
		}
	}
}

// Whatever is slow, fails or is lost, in the end each name in the table belongs to a living actor, each living actor has its name, and whoever
// looks for an actor knows its true state.
func TestNamesAgreeWithTheOwnersInTheEnd(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		w := &world{t: t, core: New(0, "n1"), table: make(map[Name]ids.ActorID), owners: make(map[ids.JobID]*fakeOwner)}
		pick := func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "which") }
		for range rapid.IntRange(1, 120).Draw(t, "steps") {
			switch what := rapid.IntRange(0, 29).Draw(t, "what"); {
			case what == 0:
				w.crash()
			case what == 1:
				w.kill()
			case what < 10:
				w.act()
			default:
				w.step(pick, rapid.IntRange(0, 5).Draw(t, "fails") == 0)
			}
		}
		for n := 0; w.step(func(int) int { return 0 }, false); n++ {
			if n > 10_000 {
				t.Fatalf("it has no end: %d events, %d calls", len(w.inbox), len(w.calls))
			}
		}
		w.check()
	})
}
