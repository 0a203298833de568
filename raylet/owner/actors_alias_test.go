package owner

import (
	"testing"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/raylet/owner/task"
	"mobula/wire"
)

// Calls that came before it was known that another actor has the name fail, if that one has died meanwhile.
func TestCallsOfAnActorWhoseNameADeadOneHas(t *testing.T) {
	s := newScript(t, Config{})
	a := s.create(named(true))
	s.step(FromDirectory{NameClaimed{Actor: ids.ActorID(a.ID)}})
	b := s.create(named(true))
	arg := s.submit(simple)
	call := s.call(b, 1)
	late := s.call(b, 2, wire.Arg{Ref: arg.ID.Return(0)})
	s.from(driver, &wire.KillActor{Actor: ids.ActorID(a.ID)})
	s.step(FromDirectory{NameClaimed{Actor: ids.ActorID(b.ID), Existing: ids.ActorID(a.ID)}}) // before the directory hears of it
	for _, spec := range []*wire.TaskSpec{call, late} {
		if s.state(spec) != task.Failed {
			t.Errorf("a call is %v", s.state(spec))
		}
	}
	s.wantError(call.ID.Return(0), errs.CodeActorDied)
}

// Those behind them are in turn.
func TestCallsGoOnBehindThoseThatMovedToTheActorWithTheName(t *testing.T) {
	s := newScript(t, Config{})
	a := s.create(named(true))
	s.step(FromDirectory{NameClaimed{Actor: ids.ActorID(a.ID)}})
	l := s.grant(worker)
	s.done(worker, l, s.executed(worker), inline(""))
	b := s.create(named(true))
	s.call(b, 1)
	s.step(FromDirectory{NameClaimed{Actor: ids.ActorID(b.ID), Existing: ids.ActorID(a.ID)}})
	s.executed(worker)
	s.call(b, 2)
	if n := len(sent[*wire.Exec](s, worker)); n != 1 {
		t.Error("the second call waits for the first, which has had its turn")
	}
}

// Those that wait for an argument, and those behind them, have their turn there, and end with the actor.
func TestCallsThatMoveToTheActorWithTheNameWaitForTheirArguments(t *testing.T) {
	for _, dies := range []bool{false, true} {
		s := newScript(t, Config{})
		a := s.create(named(true))
		s.step(FromDirectory{NameClaimed{Actor: ids.ActorID(a.ID)}})
		l := s.grant(worker)
		s.done(worker, l, s.executed(worker), inline(""))
		b := s.create(named(true))
		arg := s.submit(simple)
		first := s.call(b, 1, wire.Arg{Ref: arg.ID.Return(0)})
		second := s.call(b, 2)
		s.step(FromDirectory{NameClaimed{Actor: ids.ActorID(b.ID), Existing: ids.ActorID(a.ID)}})
		if n := len(sent[*wire.Exec](s, worker)); n != 0 {
			t.Error("the second call has overtaken the first, which waits for an argument")
		}
		if dies {
			s.from(driver, &wire.KillActor{Actor: ids.ActorID(a.ID)})
			s.wantError(first.ID.Return(0), errs.CodeActorDied)
			s.wantError(second.ID.Return(0), errs.CodeActorDied)
		}
		l = s.grant(worker2)
		s.done(worker2, l, s.executed(worker2), inline("1"))
		if dies {
			continue
		}
		if x := sent[*wire.Exec](s, worker); len(x) != 1 || len(x[0].Tasks) != 2 || x[0].Tasks[0].Spec.ID != first.ID || x[0].Tasks[1].Spec.ID != second.ID {
			t.Errorf("with its argument the worker is sent %+v, want both calls in order", x)
		}
	}
}

// A worker knows an actor by its own id alone: calls that name it by that of a creation which found its name taken come to it under its own, whether they
// waited for that, came later, had an argument in the store, or are made again.
func TestCallsByAnAliasNameTheActorInItsWorker(t *testing.T) {
	s := newScript(t, Config{})
	arg := s.makeStored(simple)
	opts := named(true)
	opts.MaxRestarts, opts.MaxTaskRetries = 1, 1
	a := s.create(opts)
	s.step(FromDirectory{NameClaimed{Actor: ids.ActorID(a.ID)}})
	l := s.grant(worker)
	s.done(worker, l, s.executed(worker), inline(""))
	b := s.create(opts)
	want := func(when string, cl ids.ClientID, calls ...*wire.TaskSpec) {
		t.Helper()
		x := sent[*wire.Exec](s, cl)
		if len(x) != 1 || len(x[0].Tasks) != len(calls) {
			t.Fatalf("%s: the worker is sent %+v", when, x)
		}
		for i, c := range calls {
			if got := x[0].Tasks[i].Spec; got.ID != c.ID || got.Actor != ids.ActorID(a.ID) || got.Seq != c.Seq || got.Opts != c.Opts {
				t.Errorf("%s: call %d is %+v, want one to %v", when, i, got, a.ID)
			}
			if c.Actor != ids.ActorID(b.ID) {
				t.Errorf("%s: the driver's own call %d was changed", when, i)
			}
		}
	}
	waits := s.call(b, 1)
	s.step(FromDirectory{NameClaimed{Actor: ids.ActorID(b.ID), Existing: ids.ActorID(a.ID)}})
	want("waited", worker, waits)
	late := s.call(b, 2)
	want("later", worker, late)
	stored := s.call(b, 3, wire.Arg{Ref: arg.ID.Return(0)})
	s.pinned(stored)
	want("with an argument in the store", worker, stored)
	s.kill(worker, errs.CodeWorkerCrashed, 0, l)
	l = s.grant(worker2)
	s.done(worker2, l, s.executed(worker2), inline(""))
	want("made again", worker2, waits, late)
}
