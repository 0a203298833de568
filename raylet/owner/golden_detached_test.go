package owner

import (
	"testing"

	"mobula/internal/ids"
	"mobula/raylet/owner/task"
	"mobula/wire"
)

// detachedActor brings a detached actor up on worker2.
func (s *script) detachedActor() (*wire.TaskSpec, ids.LeaseID) {
	s.t.Helper()
	a := s.create(&wire.TaskOptions{Func: "detached", NumReturns: 1, ActorName: "d", Detached: true})
	s.step(FromRegistry{NameClaimed{Actor: ids.ActorID(a.ID)}})
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
	for len(s.c.sweeps) > 0 {
		s.pass(0)
	}
	if n := s.c.byState[task.PendingNode]; n != 1500 {
		t.Errorf("%d of 1500 tasks of the actor are left", n)
	}
}
