package owner

import (
	"errors"
	"strings"
	"testing"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/raylet/owner/actor"
	"mobula/wire"
)

// childOf has an actor create one that escalates, in its constructor, and brings it up.
func (s *script) childOf(a *wire.TaskSpec, w ids.ClientID) (*wire.TaskSpec, ids.LeaseID) {
	s.t.Helper()
	spec := s.spec(&wire.TaskOptions{Func: "child", NumReturns: 1, MaxPendingCalls: -1, Escalate: true})
	spec.Kind, spec.Actor, spec.Parent = wire.TaskActorCreate, ids.ActorID(spec.ID), a.ID
	s.from(driver, &wire.Submit{Spec: spec}) // it holds the child too
	l := s.grant(w)
	s.done(w, l, s.executed(w), inline(""))
	return spec, l
}

func mortal(restarts int32) *wire.TaskOptions {
	return &wire.TaskOptions{Func: "parent", NumReturns: 1, MaxRestarts: restarts, MaxPendingCalls: -1}
}

// extra joins a worker of its own.
func (s *script) extra(w ids.ClientID) ids.ClientID {
	s.step(ClientJoined{Client: w, Role: wire.RoleWorker})
	return w
}

func TestAFailureOfAChildIsOneOfItsParent(t *testing.T) {
	s := newScript(t, Config{})
	p, _ := s.spawn(mortal(1), worker)
	child, l := s.childOf(p, worker2)
	call := s.call(p, 1)
	s.watch(p)
	s.kill(worker2, errs.CodeWorkerCrashed, 0, l)
	s.charges(child, actor.Dead, 0, 0)
	s.charges(p, actor.Restarting, 1, 0)
	if m := sent[*wire.StopActor](s, worker); len(m) != 1 || !m[0].Restarts || m[0].Actor != ids.ActorID(p.ID) {
		t.Fatalf("the parent's worker is told %+v", m)
	}
	if n := s.news(); len(n) != 1 || n[0].State != wire.ActorRestarting || errors.Is(n[0].Err, errs.ErrActorDied) || !strings.Contains(n[0].Err.Msg, "child") {
		t.Errorf("who watches the parent is told %+v", n)
	}
	s.wantError(call.ID.Return(0), errs.CodeActorUnavailable)

	s.up(p, worker)
	child, l = s.childOf(p, s.extra(50))
	s.watch(p)
	s.kill(50, errs.CodeWorkerCrashed, 0, l)
	s.charges(child, actor.Dead, 0, 0)
	s.charges(p, actor.Dead, 1, 0)
	if n := s.news(); len(n) != 1 || n[0].State != wire.ActorDead || !errors.Is(n[0].Err, errs.ErrActorDied) {
		t.Errorf("who watches the parent is told %+v", n)
	}
}

func TestAnEndThatWasAskedForIsNoFailure(t *testing.T) {
	s := newScript(t, Config{})
	p, _ := s.spawn(mortal(1), worker)
	killed, _ := s.childOf(p, worker2)
	s.from(driver, &wire.KillActor{Actor: ids.ActorID(killed.ID)})
	stopped, _ := s.childOf(p, worker2)
	s.from(driver, &wire.KillActor{Actor: ids.ActorID(stopped.ID), Stop: true})
	s.closed(worker2, stopped)
	released, _ := s.childOf(p, worker2)
	s.from(driver, &wire.Release{IDs: []ids.ObjectID{released.ID.Return(0)}})
	s.closed(worker2, released)
	s.charges(p, actor.Alive, 0, 0)
}

// A constructor that fails is a failure too; and where the parent has no restart left, its own parent is charged.
func TestAFailureEscalatesAsFarAsItMust(t *testing.T) {
	s := newScript(t, Config{})
	top, _ := s.spawn(mortal(1), worker)
	middle, _ := s.childOf(top, worker2)
	low := s.spec(&wire.TaskOptions{Func: "low", NumReturns: 1, MaxPendingCalls: -1, Escalate: true})
	low.Kind, low.Actor, low.Parent = wire.TaskActorCreate, ids.ActorID(low.ID), middle.ID
	s.from(driver, &wire.Submit{Spec: low})
	l := s.grant(s.extra(50))
	s.failed(50, l, s.executed(50), errs.New(errs.CodeTaskFailed, "no disk"))
	s.charges(middle, actor.Dead, 0, 0)
	s.charges(top, actor.Restarting, 1, 0)
	if e := s.c.actors.byID[ids.ActorID(top.ID)].cause; !errors.Is(e, errs.ErrTaskFailed) || errors.Is(e, errs.ErrActorDied) {
		t.Errorf("the reason is %v", e)
	}
}

// Where parent and child died together the parent is charged all the same: whether they share a process does not matter.
func TestAParentThatDiedWithItsChildIsCharged(t *testing.T) {
	for _, restarts := range []int32{0, 1} {
		s := newScript(t, Config{})
		p, lp := s.spawn(mortal(restarts), worker)
		child, l := s.childOf(p, worker)
		s.call(child, 1)
		s.kill(worker, errs.CodeWorkerCrashed, 0, l, lp)
		s.charges(child, actor.Dead, 0, 0)
		want := actor.Restarting
		if restarts == 0 {
			want = actor.Dead
		}
		s.charges(p, want, int(restarts), 0)
	}
}

// A child that fails while its parent's constructor runs makes that run again.
func TestAChildThatFailsInItsParentsConstructor(t *testing.T) {
	s := newScript(t, Config{})
	p := s.create(mortal(1))
	lp := s.grant(worker)
	made := s.executed(worker)
	_, l := s.childOf(p, worker2)
	s.kill(worker2, errs.CodeWorkerCrashed, 0, l)
	s.charges(p, actor.Creating, 0, 0)
	s.done(worker, lp, made, inline(""))
	s.charges(p, actor.Restarting, 1, 0)
}

// The call that has created the child is forgotten, and the core was rebuilt: the parent is known.
func TestTheParentOfAChildIsInTheLog(t *testing.T) {
	s := newScript(t, Config{})
	p, lp := s.spawn(mortal(-1), worker)
	call := s.call(p, 1)
	x := s.executed(worker)
	child := s.spec(&wire.TaskOptions{Func: "child", NumReturns: 1, MaxPendingCalls: -1, Escalate: true})
	child.Kind, child.Actor, child.Parent = wire.TaskActorCreate, ids.ActorID(child.ID), call.ID
	s.from(driver, &wire.Submit{Spec: child})
	l := s.grant(worker2)
	s.done(worker2, l, s.executed(worker2), inline(""))
	s.done(worker, lp, x, inline("1"))
	s.from(driver, &wire.Release{IDs: []ids.ObjectID{call.ID.Return(0)}})
	if s.c.tasks.task(call.ID) != nil {
		t.Fatal("the call is still known")
	}
	h, hp, hc := holds(7), holds(7), holds(7)
	h.Handles = []ids.ObjectID{p.ID.Return(0), child.ID.Return(0)}
	hp.Actors, hc.Actors = []ids.ActorID{ids.ActorID(p.ID)}, []ids.ActorID{ids.ActorID(child.ID)}
	s.answered(7, map[ids.ClientID]*wire.Holdings{driver: h, worker: hp, worker2: hc})
	s.charges(p, actor.Alive, 0, 0)
	s.kill(worker2, errs.CodeWorkerCrashed, 0, s.c.actors.byID[ids.ActorID(child.ID)].lease.id)
	s.charges(p, actor.Restarting, 1, 0)

	// A node that is killed with both: no worker has them when it is back, and the parent is charged twice at most, not lost.
	s.answered(8, map[ids.ClientID]*wire.Holdings{driver: func() *wire.Holdings { h.Epoch = 8; return h }()})
	s.charges(child, actor.Dead, 0, 0)
	s.charges(p, actor.Restarting, 1, 0)
}

// The failure of a child in its parent's constructor is in the log: the core may be lost before the constructor returns.
func TestAChildThatFailsInItsParentsConstructorIsInTheLog(t *testing.T) {
	for _, survives := range []bool{true, false} {
		s := newScript(t, Config{})
		p := s.create(mortal(1))
		lp := s.grant(worker)
		made := s.executed(worker)
		child, l := s.childOf(p, worker2)
		s.kill(worker2, errs.CodeWorkerCrashed, 0, l)
		hd, hw := holds(7), holds(7)
		hd.Handles = []ids.ObjectID{p.ID.Return(0), child.ID.Return(0)}
		if survives {
			hw.Tasks = []wire.Attempt{{Task: p.ID, Attempt: made.Attempt, Lease: lp}}
		}
		s.answered(7, map[ids.ClientID]*wire.Holdings{driver: hd, worker: hw})
		if !survives { // it runs again, and gets the child that is dead
			lp = s.grant(worker)
			made = s.executed(worker)
		}
		s.done(worker, lp, made, inline(""))
		s.charges(p, actor.Restarting, 1, 0)
		if s.c.actors.byID[ids.ActorID(p.ID)].hurt != nil {
			t.Error("it is charged again")
		}
	}
}
