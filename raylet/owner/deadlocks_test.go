package owner

import (
	"testing"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/raylet/owner/task"
	"mobula/wire"
)

// blocks has a call or a task that runs wait for the results of others.
func (s *script) blocks(w ids.ClientID, l ids.LeaseID, who ids.TaskID, on ...*wire.TaskSpec) {
	m := &wire.Blocked{Task: who, Lease: l}
	for _, x := range on {
		m.WaitsFor = append(m.WaitsFor, x.ID.Return(0))
	}
	s.from(w, m)
}

// straightWait is what a process says of a call of an actor that went straight and waits for another.
func (s *script) straightWait(no uint64, a *wire.TaskSpec, l ids.LeaseID, needs ...wire.Need) *wire.Waits {
	return &wire.Waits{No: no, Task: ids.Derive(s.root, 1000+no), Name: "waiter", Actor: ids.ActorID(a.ID), Instance: l, Needs: needs}
}

// straightNeed is the result of a call of an actor, which the owner does not know.
func (s *script) straightNeed(no uint64, a *wire.TaskSpec) wire.Need {
	return wire.Need{Object: ids.Derive(s.root, 2000+no).Return(0), Call: true, Name: "needed", Actor: ids.ActorID(a.ID)}
}

// result is what a call returns that waits itself.
func result(m *wire.Waits) wire.Need {
	return wire.Need{Object: m.Task.Return(0), Call: true, Name: m.Name, Actor: m.Actor, Group: m.Group}
}

func (s *script) asked(cl ids.ClientID) (round uint64) {
	for _, m := range sent[*wire.StillWaits](s, cl) {
		round = m.Round
	}
	return round
}

// goesOn has a process answer that a wait goes on.
func (s *script) goesOn(cl ids.ClientID, m *wire.Waits, round uint64) {
	again := *m
	again.Round = round
	s.from(cl, &again)
}

func (s *script) wantCannotBegin(when string, cl ids.ClientID, calls ...ids.TaskID) {
	s.t.Helper()
	got := sent[*wire.CannotBegin](s, cl)
	if len(got) != len(calls) {
		s.t.Errorf("%s: %d calls are told that they cannot begin, want %d", when, len(got), len(calls))
		return
	}
	for i, m := range got {
		if m.Task != calls[i] || m.Err.Code != errs.CodeDeadlock {
			s.t.Errorf("%s: told of %v: %v", when, m.Task, m.Err)
		}
	}
}

// Two actors whose calls went straight wait for each other: the call that cannot begin ends, when both were said to wait still.
func TestACircleOfStraightCallsIsFound(t *testing.T) {
	s := straightScript(t)
	a, la := s.spawn(counter, worker)
	b, lb := s.spawn(counter, worker2)
	first := s.straightWait(1, a, la)
	second := s.straightWait(2, b, lb, s.straightNeed(1, a))
	first.Needs = []wire.Need{result(second)}
	s.from(worker, first)
	if s.asked(worker) != 0 {
		t.Fatal("a wait alone is asked about")
	}
	s.from(worker2, second)
	round := s.asked(worker2)
	s.wantCannotBegin("nobody has answered", worker2)
	if round == 0 || s.asked(worker) != round {
		t.Fatalf("asked in rounds %d and %d", s.asked(worker), round)
	}
	s.goesOn(worker, first, round)
	s.wantCannotBegin("one has answered", worker2)
	s.goesOn(worker2, second, round)
	s.wantCannotBegin("both have", worker2, second.Needs[0].Object.Task)
}

// A wait that is over when it is asked about has opened the circle.
func TestACircleThatWasNeverWholeIsNotBelieved(t *testing.T) {
	s := straightScript(t)
	a, la := s.spawn(counter, worker)
	b, lb := s.spawn(counter, worker2)
	first := s.straightWait(1, a, la)
	second := s.straightWait(2, b, lb, s.straightNeed(1, a))
	first.Needs = []wire.Need{result(second)}
	s.from(worker, first)
	s.from(worker2, second)
	round := s.asked(worker)
	s.from(worker, &wire.WaitOver{No: 1, Task: first.Task})
	s.goesOn(worker2, second, round)
	s.wantCannotBegin("the other is over", worker2)
	later := *first
	later.No = 9
	s.from(worker, &later) // it waits again: that is another circle
	if again := s.asked(worker); again <= round {
		t.Errorf("asked in round %d after %d", again, round)
	}
	s.from(worker, &wire.WaitOver{No: 1, Task: first.Task}) // an old word
	s.goesOn(worker, &later, s.asked(worker))
	s.wantCannotBegin("of two one has answered", worker2)
}

// What is left behind by an instance that has ended holds no place of the next; what a process has said that has ended holds none either.
func TestAWaitEndsWithItsInstance(t *testing.T) {
	s := straightScript(t)
	a, la := s.spawn(mortal(1), worker)
	self := s.straightWait(1, a, la+100, s.straightNeed(1, a))
	s.from(worker, self)
	if s.asked(worker) != 0 {
		t.Error("a wait of another instance holds a place")
	}
	self = s.straightWait(2, a, la, s.straightNeed(1, a))
	s.from(worker, self)
	round := s.asked(worker)
	if round == 0 {
		t.Fatal("a call that waits for its own actor is not found")
	}
	s.step(ClientGone{Client: worker})
	s.goesOn(worker2, self, round) // whoever says that has not got it
	s.wantCannotBegin("its process is gone", worker2)
}

// A place that is free, or in another group, is none that is waited for.
func TestAPlaceThatIsFree(t *testing.T) {
	s := straightScript(t)
	wide, l := s.spawn(&wire.TaskOptions{Func: "wide", NumReturns: 1, MaxConcurrency: 2, Groups: []wire.ConcurrencyGroup{{Name: "io", Max: 1}}}, worker)
	one := s.straightWait(1, wide, l, s.straightNeed(1, wide))
	s.from(worker, one)
	inIO := s.straightWait(2, wide, l, s.straightNeed(2, wide))
	inIO.Group = "io"
	s.from(worker, inIO)
	if s.asked(worker) != 0 {
		t.Error("there was a place")
	}
	two := s.straightWait(3, wide, l, s.straightNeed(3, wide))
	s.from(worker, two)
	round := s.asked(worker)
	if round == 0 {
		t.Fatal("both places are taken by who waits for one")
	}
	s.goesOn(worker, one, round)
	s.goesOn(worker, two, round)
	s.wantCannotBegin("both wait", worker, two.Needs[0].Object.Task)
}

// A circle by way of a task, of calls that the owner pushes, and of calls that it was told of.
func TestACircleOfBothKindsIsFound(t *testing.T) {
	s := straightScript(t)
	a, la := s.spawn(counter, worker)
	user := s.submit(simple)
	lt := s.grant(worker2)
	w := s.straightWait(1, a, la, wire.Need{Object: user.ID.Return(0)})
	s.from(worker, w)
	pushed := s.call(a, 1)
	s.blocks(worker2, lt, user.ID, pushed)
	round := s.asked(worker)
	if round == 0 {
		t.Fatalf("the task's wait closes the circle: the call is %v", s.state(pushed))
	}
	s.goesOn(worker, w, round)
	if s.state(pushed) != task.Failed {
		t.Errorf("the call that cannot begin is %v", s.state(pushed))
	}
	s.wantCannotBegin("it is the owner's", worker)

	b, lb := s.spawn(counter, worker)
	user = s.submit(simple)
	lt = s.grant(worker2)
	w = s.straightWait(2, b, lb, wire.Need{Object: user.ID.Return(0)})
	s.from(worker, w)
	adopted := s.adopt(driver, b, s.channel(driver, b), 1, nil)
	s.blocks(worker2, lt, user.ID, adopted)
	s.goesOn(worker, w, s.asked(worker))
	s.wantCannotBegin("its caller has it", driver, adopted.ID)
}

// Where all that wait for one another run, nothing can be opened: the owner goes on with others.
func TestACircleOfWhatRuns(t *testing.T) {
	s := newScript(t, Config{})
	first := s.submit(simple)
	l1 := s.grant(worker)
	second := s.submit(&wire.TaskOptions{Func: "other", NumReturns: 1})
	l2 := s.grant(worker2)
	s.blocks(worker, l1, first.ID, second)
	s.blocks(worker2, l2, second.ID, first)
	if s.state(first) != task.RunningInGet || s.state(second) != task.RunningInGet {
		t.Errorf("they are %v and %v", s.state(first), s.state(second))
	}
}
