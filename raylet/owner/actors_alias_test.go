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
