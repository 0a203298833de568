package owner

import (
	"testing"
	"time"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/raylet/owner/actor"
	"mobula/raylet/sched"
	"mobula/wire"
)

// closed has a worker answer that it has closed the actor which it was asked to close in the last step.
func (s *script) closed(w ids.ClientID, a *wire.TaskSpec) {
	s.t.Helper()
	if m := sent[*wire.StopActor](s, w); len(m) != 1 || !m[0].Close || m[0].Actor != ids.ActorID(a.ID) {
		s.t.Fatalf("the worker is told %+v, want to close actor %v", m, a.ID)
	}
	s.from(w, &wire.ActorStopped{Actor: ids.ActorID(a.ID)})
}

func (s *script) news() []*wire.ActorNews { return sent[*wire.ActorNews](s, driver) }

func (s *script) watch(a *wire.TaskSpec) {
	s.from(driver, &wire.WatchActor{Actor: ids.ActorID(a.ID)})
}

func TestAStopLetsTheCallsBeforeItRunAndNoneAfterIt(t *testing.T) {
	s := newScript(t, Config{})
	a, l := s.spawn(counter, worker)
	first, second := s.call(a, 1), s.call(a, 2)
	s.from(driver, &wire.KillActor{Actor: ids.ActorID(a.ID), Stop: true})
	late := s.call(a, 3)
	s.wantError(late.ID.Return(0), errs.CodeActorDied)
	s.done(worker, l, s.attempt(first), inline("1"))
	if len(sent[*wire.StopActor](s, worker)) != 0 {
		t.Fatal("it is closed under a call")
	}
	s.watch(a)
	s.done(worker, l, s.attempt(second), inline("2"))
	if len(told[sched.Return](s)) != 0 {
		t.Error("its lease is given back before it is closed")
	}
	s.closed(worker, a)
	if n := s.news(); len(n) != 1 || n[0].State != wire.ActorDead || n[0].Err.Code != errs.CodeActorDied {
		t.Errorf("who watches it is told %+v", n)
	}
	if len(told[sched.Return](s)) != 1 {
		t.Error("its lease stays")
	}
}

func TestACloseThatFailsIsSeenAndOneThatHangsIsNotWaitedFor(t *testing.T) {
	s := newScript(t, Config{StopGrace: time.Minute})
	a, _ := s.spawn(counter, worker)
	s.watch(a)
	s.from(driver, &wire.KillActor{Actor: ids.ActorID(a.ID), Stop: true})
	s.from(worker, &wire.ActorStopped{Actor: ids.ActorID(a.ID), Err: errs.New(errs.CodeTaskFailed, "disk full")})
	if n := s.news(); len(n) != 1 || n[0].State != wire.ActorDead || len(n[0].Err.Cause) != 1 || n[0].Err.Cause[0].Code != errs.CodeTaskFailed {
		t.Errorf("who watches it is told %+v", n)
	}
	b, _ := s.spawn(counter, worker)
	s.watch(b)
	s.from(driver, &wire.KillActor{Actor: ids.ActorID(b.ID), Stop: true})
	s.pass(time.Minute)
	if n := s.news(); len(n) != 1 || n[0].State != wire.ActorDead {
		t.Errorf("after the grace it is %+v", n)
	}
	if m := sent[*wire.StopActor](s, worker); len(m) != 1 || m[0].Close {
		t.Errorf("its worker is told %+v", m)
	}
}

func TestAStopOutlivesTheOwnersCore(t *testing.T) {
	for _, closing := range []bool{false, true} {
		s := newScript(t, Config{})
		a, l := s.spawn(counter, worker)
		call := s.call(a, 1)
		s.from(driver, &wire.KillActor{Actor: ids.ActorID(a.ID), Stop: true})
		x := s.attempt(call)
		holds := &wire.Holdings{Component: wire.ComponentOwner, Epoch: 1, Actors: []ids.ActorID{ids.ActorID(a.ID)}}
		if closing {
			s.done(worker, l, x, inline("1"))
		} else {
			holds.Tasks = []wire.Attempt{{Task: call.ID, Attempt: x.Attempt, Lease: l}}
		}
		s.rebuild(1)
		s.from(driver, &wire.Holdings{Component: wire.ComponentOwner, Epoch: 1, Handles: []ids.ObjectID{a.ID.Return(0), call.ID.Return(0)}})
		s.from(worker2, &wire.Holdings{Component: wire.ComponentOwner, Epoch: 1})
		s.from(worker, holds)
		if !closing {
			s.done(worker, l, x, inline("1"))
		}
		s.closed(worker, a)
		if st := s.c.actors.byID[ids.ActorID(a.ID)].state; st != actor.Dead {
			t.Errorf("closing %v: it is %v", closing, st)
		}
	}
}

func TestWhoWatchesIsToldWhatIsTrueNowAndEachChange(t *testing.T) {
	s := newScript(t, Config{})
	a := s.create(&wire.TaskOptions{Func: "mortal", NumReturns: 1, MaxRestarts: 1})
	is := func(what string, want wire.ActorState, restarts uint32) {
		t.Helper()
		if n := s.news(); len(n) != 1 || n[0].State != want || n[0].Restarts != restarts || n[0].Actor != ids.ActorID(a.ID) {
			t.Fatalf("%s: told %+v, want %v after %d restarts", what, n, want, restarts)
		}
	}
	s.watch(a)
	is("at once", wire.ActorStarting, 0)
	l := s.grant(worker)
	s.done(worker, l, s.executed(worker), inline(""))
	is("constructed", wire.ActorAlive, 0)
	s.kill(worker, errs.CodeWorkerCrashed, 0, l)
	is("its process died", wire.ActorRestarting, 1)
	l = s.grant(worker2)
	s.done(worker2, l, s.executed(worker2), inline(""))
	is("constructed again", wire.ActorAlive, 1)
	s.from(driver, &wire.KillActor{Actor: ids.ActorID(a.ID)})
	is("killed", wire.ActorDead, 1)
	s.watch(a)
	is("a watch of the dead", wire.ActorDead, 1)

	b, _ := s.spawn(counter, worker2)
	s.watch(b)
	s.from(driver, &wire.WatchActor{Actor: ids.ActorID(b.ID), Done: true})
	s.from(driver, &wire.KillActor{Actor: ids.ActorID(b.ID)})
	if n := s.news(); len(n) != 0 {
		t.Errorf("who watches no longer is told %+v", n)
	}
}

func TestAnotherJobsActorIsWatched(t *testing.T) {
	s := newScript(t, Config{})
	far := &wire.TaskSpec{ID: ids.Derive(ids.RootTask(9, 9), 1)}
	id := ids.ActorID(far.ID)
	s.watch(far)
	if m := told[LocateActor](s); len(m) != 1 || m[0].Actor != id || len(s.news()) != 0 {
		t.Fatalf("the directory is asked %+v, and %+v told", m, s.news())
	}
	s.step(FromDirectory{ActorAt{Actor: id, State: actor.Alive, Worker: worker, Lease: 77, Restarts: 2}})
	if n := s.news(); len(n) != 1 || n[0].State != wire.ActorAlive || n[0].Restarts != 2 {
		t.Fatalf("told %+v", n)
	}
	s.step(FromDirectory{ActorAt{Actor: id, State: actor.Dead, Err: errs.New(errs.CodeActorDied, "why")}})
	if n := s.news(); len(n) != 1 || n[0].State != wire.ActorDead || n[0].Err.Msg != "why" {
		t.Fatalf("told %+v", n)
	}
	if s.c.actors.byID[id] != nil {
		t.Error("its record stays")
	}
}

// An actor may end in the very step that gives its constructor to a worker: the worker hears of the constructor first, and then of the end.
func TestAnActorThatEndsAsItIsGivenToAWorker(t *testing.T) {
	s := newScript(t, Config{})
	first := s.create(counter)
	key := sched.ClassKey{Job: 1, Class: s.c.tasks.task(first.ID).class.id}
	s.from(driver, &wire.KillActor{Actor: ids.ActorID(first.ID)})
	s.step(FromSched{sched.Granted{Key: key, Lease: 1, Worker: worker}}) // nobody needs it yet
	a := s.spec(counter)
	a.Kind, a.Actor = wire.TaskActorCreate, ids.ActorID(a.ID)
	s.from(driver, &wire.Submit{Spec: a}, &wire.KillActor{Actor: ids.ActorID(a.ID), Stop: true})
	told := ""
	for _, e := range s.out {
		switch e.Wire.(type) {
		case *wire.Exec:
			told += "exec "
		case *wire.StopActor:
			told += "stop "
		}
	}
	if told != "exec stop " {
		t.Errorf("the worker is told %q", told)
	}
}

// A call that has passed its deadline is over for its caller while its attempt still runs. It keeps neither the actor from its end nor
// anything of the lease that is given back then.
func TestAnActorIsClosedOverACallThatIsPastItsDeadline(t *testing.T) {
	s := newScript(t, Config{})
	a, _ := s.spawn(counter, worker)
	call := s.callSpec(a, 1)
	call.Deadline = s.now + int64(time.Second)
	s.from(driver, &wire.Submit{Spec: call})
	s.pass(time.Second)
	s.wantError(call.ID.Return(0), errs.CodeDeadline)
	s.from(driver, &wire.KillActor{Actor: ids.ActorID(a.ID), Stop: true})
	s.closed(worker, a)
	if len(told[sched.Return](s)) != 1 {
		t.Errorf("its lease is given back %d times", len(told[sched.Return](s)))
	}
	s.from(driver, &wire.Release{IDs: []ids.ObjectID{call.ID.Return(0)}})
	if x := s.c.tasks.task(call.ID); x != nil {
		t.Errorf("nobody needs the call, and it is kept: %+v", x)
	}
	s.pass(time.Minute) // the grace of the call
}
