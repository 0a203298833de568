package owner

import (
	"slices"
	"testing"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/objectstore"
	"mobula/wire"
)

// A call that ends before its turn leaves no hole in the sequence that those behind it would wait at.
func TestCallsDoNotWaitForOneThatEndedInTheLine(t *testing.T) {
	s := newScript(t, Config{})
	a, _ := s.spawn(counter, worker)
	arg := s.submit(simple)
	first := s.call(a, 1, wire.Arg{Ref: arg.ID.Return(0)})
	second := s.call(a, 2)
	third := s.call(a, 3, wire.Arg{Ref: arg.ID.Return(0)})
	s.from(driver, &wire.Cancel{Task: second.ID})
	s.wantError(second.ID.Return(0), errs.CodeCancelled)
	l := s.grant(worker2)
	s.done(worker2, l, s.executed(worker2), inline("v"))
	if got := s.pushed(worker); !slices.Equal(got, []ids.TaskID{first.ID, third.ID}) {
		t.Fatalf("pushed %v, want %v and %v", got, first.ID, third.ID)
	}
	if fourth := s.call(a, 4); !slices.Equal(s.pushed(worker), []ids.TaskID{fourth.ID}) {
		t.Errorf("pushed %v, want %v", s.pushed(worker), fourth.ID)
	}
}

// The same of one that was refused.
func TestCallsDoNotWaitForOneThatWasRefused(t *testing.T) {
	s := newScript(t, Config{})
	a, l := s.spawn(&wire.TaskOptions{Func: "small", NumReturns: 1, MaxPendingCalls: 2}, worker)
	arg := s.submit(simple)
	first := s.call(a, 1, wire.Arg{Ref: arg.ID.Return(0)})
	s.call(a, 2)
	s.wantError(s.call(a, 3).ID.Return(0), errs.CodePendingCallsLimit)
	la := s.grant(worker2)
	s.done(worker2, la, s.executed(worker2), inline("v"))
	s.from(worker, &wire.Done{Task: first.ID, Attempt: 1, Lease: l, Results: []wire.Result{inline("")}})
	if fourth := s.call(a, 4); !slices.Equal(s.pushed(worker), []ids.TaskID{fourth.ID}) {
		t.Errorf("pushed %v, want %v", s.pushed(worker), fourth.ID)
	}
}

// The same of those that failed because their actor restarts.
func TestCallsDoNotWaitForThoseThatARestartFailed(t *testing.T) {
	s := newScript(t, Config{})
	a, _ := s.spawn(&wire.TaskOptions{Func: "A", NumReturns: 1, MaxRestarts: 1}, worker)
	arg := s.submit(simple)
	first := s.call(a, 1, wire.Arg{Ref: arg.ID.Return(0)})
	s.call(a, 2)
	s.from(driver, &wire.KillActor{Actor: ids.ActorID(a.ID), Restart: true})
	s.wantError(first.ID.Return(0), errs.CodeActorUnavailable)
	s.from(driver, &wire.Cancel{Task: arg.ID})
	la := s.grant(worker2)
	s.done(worker2, la, s.executed(worker2), inline(""))
	if third := s.call(a, 3); !slices.Equal(s.pushed(worker2), []ids.TaskID{third.ID}) {
		t.Errorf("pushed %v, want %v", s.pushed(worker2), third.ID)
	}
}

// Calls whose argument is found lost as their turn comes fail, and hold up none behind them.
func TestCallsDoNotWaitForThoseWhoseArgumentIsLost(t *testing.T) {
	s := newScript(t, Config{})
	arg := s.root.Put(1)
	s.from(driver, &wire.Seal{ID: arg, Size: 8})
	a := s.create(counter)
	first, second := s.call(a, 1, wire.Arg{Ref: arg}), s.call(a, 2, wire.Arg{Ref: arg})
	third := s.call(a, 3)
	s.step(FromStore{Msg: objectstore.Lost{ID: arg, Err: errs.New(errs.CodeObjectLost, "it is not there")}})
	l := s.grant(worker)
	s.done(worker, l, s.executed(worker), inline(""))
	if got := s.pushed(worker); !slices.Equal(got, []ids.TaskID{third.ID}) {
		t.Errorf("pushed %v, want %v", got, third.ID)
	}
	s.wantError(first.ID.Return(0), errs.CodeObjectLost)
	s.wantError(second.ID.Return(0), errs.CodeObjectLost)
}
