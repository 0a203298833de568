package owner

import (
	"testing"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/objectstore"
	"mobula/wire"
)

// wantPins compares what the last step told of the pins of a task's first attempt.
func (s *script) wantPins(when string, spec *wire.TaskSpec, abandoned, dropped int) {
	s.t.Helper()
	a, u := told[objectstore.AbandonArgs](s), told[objectstore.UnpinArgs](s)
	if len(a) != abandoned || len(u) != dropped {
		s.t.Fatalf("%s: abandoned %+v, dropped %+v", when, a, u)
	}
	for _, at := range a {
		u = append(u, objectstore.UnpinArgs(at))
	}
	for _, at := range u {
		if at.Task != spec.ID || at.Attempt != 1 {
			s.t.Fatalf("%s: %+v is of another attempt", when, at)
		}
	}
}

// An actor is killed on a worker that lives: the calls that it has been sent may run still, and read their arguments until it reports them.
func TestPinsOfALostCallStayUntilItsWorkerIsDone(t *testing.T) {
	s := newScript(t, Config{})
	arg := s.makeStored(simple)
	a, l := s.spawn(&wire.TaskOptions{Func: "phoenix", NumReturns: 1, MaxRestarts: 1, MaxTaskRetries: 1}, worker)
	call := s.call(a, 1, wire.Arg{Ref: arg.ID.Return(0)})
	s.pinned(call)
	x := s.executed(worker)
	s.from(driver, &wire.KillActor{Actor: ids.ActorID(a.ID), Restart: true})
	s.wantPins("when the actor is killed", call, 1, 0)
	s.failed(worker, l, x, errs.New(errs.CodeActorUnavailable, "it was killed"))
	s.wantPins("when the call has returned", call, 0, 1)
}

// A task that ignores its cancellation is abandoned: its worker says so at once, and again when it returns.
func TestPinsOfAnAbandonedTaskStayUntilItReturns(t *testing.T) {
	s := newScript(t, Config{})
	arg := s.makeStored(simple)
	spec := s.submit(simple, wire.Arg{Ref: arg.ID.Return(0)})
	l := s.grant(worker)
	s.pinned(spec)
	x := s.executed(worker)
	s.from(driver, &wire.Cancel{Task: spec.ID, Force: true})
	s.wantPins("when it is abandoned", spec, 1, 0)
	d := &wire.Done{Task: spec.ID, Attempt: x.Attempt, Lease: l, Err: errs.New(errs.CodeCancelled, "it was abandoned"), StillRuns: true}
	s.from(worker, d)
	s.wantPins("when its worker says that it still runs", spec, 1, 0)

	s.rebuild(1)
	s.from(driver, holds(1))
	s.from(worker2, holds(1))
	h := holds(1)
	h.Tasks = []wire.Attempt{{Task: spec.ID, Attempt: x.Attempt, Lease: l}}
	s.from(worker, h)
	if k := told[objectstore.KeepArgs](s); len(k) != 1 || len(k[0].Attempts) != 1 || k[0].Attempts[0].Task != spec.ID {
		t.Fatalf("a rebuilt core has the store keep %+v", k)
	}
	last := *d
	last.StillRuns = false
	s.from(worker, &last)
	s.wantPins("when it has returned", spec, 0, 1)
}

// What a dead node's store had said while a rebuilt core waited for its clients is of no copy any more.
func TestRebuiltCoreTakesNoCopiesOfADeadNode(t *testing.T) {
	const there = ids.ClientID(1<<40 | 5)
	s := newScript(t, Config{})
	spec := s.makeStored(simple)
	id := spec.ID.Return(0)
	s.rebuildWith(Restored{Epoch: 1, Nodes: []ids.Home{there.Home()}})
	s.step(FromStore{there.Home(), objectstore.Inventory{Job: 1, Objects: []objectstore.SealedInfo{{ID: id, Attempt: 1, Size: 8}}}})
	s.step(NodeGone{Node: there.Home(), Err: errs.New(errs.CodeWorkerCrashed, "it is dead")})
	s.from(worker, holds(1))
	s.from(worker2, holds(1))
	h := holds(1)
	h.Handles = []ids.ObjectID{id}
	s.from(driver, h)
	if on := s.c.memory.copies.of(s.c.objects.object(id)); len(on) != 1 || on[0] != s.c.home() {
		t.Errorf("copies are on %v", on)
	}
	s.step(FromStore{there.Home(), objectstore.Inventory{Job: 1, Objects: []objectstore.SealedInfo{{ID: id, Attempt: 1, Size: 8}}}}) // of its next life
	if on := s.c.memory.copies.of(s.c.objects.object(id)); len(on) != 2 {
		t.Errorf("copies are on %v, one of them on a node that is back", on)
	}
}
