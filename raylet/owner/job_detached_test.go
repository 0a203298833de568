package owner

import (
	"testing"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/raylet/owner/actor"
	"mobula/raylet/owner/task"
	"mobula/wire"
)

// detachedActor brings a detached actor up on worker2.
func (s *script) detachedActor() (*wire.TaskSpec, ids.LeaseID) {
	s.t.Helper()
	a := s.create(&wire.TaskOptions{Func: "detached", NumReturns: 1, ActorName: "d", Detached: true})
	s.step(FromDirectory{NameClaimed{Actor: ids.ActorID(a.ID)}})
	l := s.grant(worker2)
	s.done(worker2, l, s.executed(worker2), inline(""))
	return a, l
}

// What a detached actor's call has submitted goes on without the driver, though the call has ended and is forgotten.
func TestTasksOfADetachedActorOutliveTheDriver(t *testing.T) {
	s := newScript(t, Config{})
	a, l := s.detachedActor()
	call := s.call(a, 1)
	x := s.executed(worker2)
	kid := s.spec(simple)
	kid.Parent = call.ID
	grandkid := s.spec(simple, wire.Arg{Ref: kid.ID.Return(0)})
	grandkid.Parent = kid.ID
	s.from(worker2, &wire.Submit{Spec: kid}, &wire.Submit{Spec: grandkid})
	s.done(worker2, l, x, inline(""))
	s.from(driver, &wire.Release{IDs: []ids.ObjectID{call.ID.Return(0)}})
	if s.c.tasks.task(call.ID) != nil {
		t.Fatal("the call is not forgotten")
	}
	own := s.submit(simple)
	s.step(ClientGone{Client: driver})
	if s.state(own) != task.None {
		t.Errorf("the driver's own task is %v", s.state(own))
	}
	if s.state(kid) != task.PendingNode || s.state(grandkid) != task.PendingArgs {
		t.Errorf("the actor's tasks are %v and %v", s.state(kid), s.state(grandkid))
	}
}

// The same of those whose specs are paged out.
func TestQueuedTasksOfADetachedActorOutliveTheDriver(t *testing.T) {
	s := newScript(t, Config{InlineBudget: 1 << 20})
	a, _ := s.detachedActor()
	call := s.call(a, 1)
	var msgs []wire.Msg
	for range 1500 {
		kid := s.spec(simple, wire.Arg{Value: wire.Value{Data: make([]byte, 1000)}})
		kid.Parent = call.ID
		msgs = append(msgs, &wire.Submit{Spec: kid})
	}
	s.from(worker2, msgs...)
	s.submit(simple) // the log has told the positions only now
	if s.c.stats.PagedOut == 0 {
		t.Fatal("nothing is paged out")
	}
	s.step(ClientGone{Client: driver})
	for s.c.sweeps.Len() > 0 {
		s.pass(0)
	}
	if n := s.c.byState[task.PendingNode]; n != 1500 {
		t.Errorf("%d of 1500 tasks of the actor are left", n)
	}
}

// A child of a detached actor, and its own child, go on without the driver, also after the owner's core was lost and when nothing of the calls
// that created them is known any more; they end with the job's last detached actor.
func TestChildrenOfADetachedActorOutliveTheDriver(t *testing.T) {
	for _, lost := range []bool{false, true} {
		s := newScript(t, Config{})
		a, l := s.detachedActor()
		child := func(parent *wire.TaskSpec, lease ids.LeaseID, w ids.ClientID) (*wire.TaskSpec, ids.LeaseID) {
			call := s.call(parent, 1)
			x := s.executed(w)
			spec := s.spec(counter)
			spec.Kind, spec.Actor, spec.Parent = wire.TaskActorCreate, ids.ActorID(spec.ID), call.ID
			s.from(worker2, &wire.Submit{Spec: spec})
			own := s.grant(worker)
			s.done(worker, own, s.executed(worker), inline(""))
			s.done(w, lease, x, inline(""))
			s.from(driver, &wire.Release{IDs: []ids.ObjectID{call.ID.Return(0)}})
			return spec, own
		}
		first, lf := child(a, l, worker2)
		second, _ := child(first, lf, worker)
		own, _ := s.spawn(counter, worker)
		if lost {
			hd, h2, hw := holds(7), holds(7), holds(7)
			hd.Handles = []ids.ObjectID{own.ID.Return(0)}
			h2.Handles = []ids.ObjectID{first.ID.Return(0), second.ID.Return(0)}
			h2.Actors = []ids.ActorID{ids.ActorID(a.ID)}
			hw.Actors = []ids.ActorID{ids.ActorID(own.ID), ids.ActorID(first.ID), ids.ActorID(second.ID)}
			s.answered(7, map[ids.ClientID]*wire.Holdings{driver: hd, worker: hw, worker2: h2})
		}
		s.step(ClientGone{Client: driver})
		s.charges(first, actor.Alive, 0, 0)
		s.charges(second, actor.Alive, 0, 0)
		if st := s.c.actors.byID[ids.ActorID(own.ID)].state; st != actor.Stopping {
			t.Errorf("the driver's own actor is %v", st)
		}
		s.from(worker, &wire.ActorStopped{Actor: ids.ActorID(own.ID)})
		s.step(FromDirectory{KillRequested{Actor: ids.ActorID(a.ID)}})
		s.charges(first, actor.Stopping, 0, 0)
		s.charges(second, actor.Stopping, 0, 0)
		s.from(worker, &wire.ActorStopped{Actor: ids.ActorID(first.ID)}, &wire.ActorStopped{Actor: ids.ActorID(second.ID), Err: errs.New(errs.CodeTaskFailed, "no disk")})
		if !s.ended() {
			t.Error("the job does not end with its last actor")
		}
	}
}
