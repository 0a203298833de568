package owner

import (
	"testing"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/wire"
)

// raises has a task put something and fail with a reference to it, which its worker then lets go of.
func (s *script) raises(spec *wire.TaskSpec, l ids.LeaseID) ids.ObjectID {
	s.t.Helper()
	x := s.executed(worker)
	id := spec.ID.Put(1)
	s.from(worker, &wire.PutValue{ID: id, Value: wire.Value{Data: []byte("inner")}})
	s.failed(worker, l, x, raised(id))
	s.from(worker, &wire.Release{IDs: []ids.ObjectID{id}})
	return id
}

func (s *script) wantValue(id ids.ObjectID, want string) {
	s.t.Helper()
	if r := s.result(id); r.Result.Kind != wire.ResultInline || string(r.Result.Value.Data) != want {
		s.t.Fatalf("object %v: got %+v, want %q", id, r.Result, want)
	}
}

func (s *script) wantEmpty() {
	s.t.Helper()
	if n := s.c.tasks.n + s.c.puts.n + len(s.c.placeholders); n != 0 {
		s.t.Errorf("%d tasks, %d puts and %d unknown objects are left", s.c.tasks.n, s.c.puts.n, len(s.c.placeholders))
	}
}

// What a failed task's error has references to lives as long as what the task was to give, or as what failed for that in turn.
func TestAnErrorHoldsWhatItHasReferencesTo(t *testing.T) {
	s := newScript(t, Config{})
	first := s.submit(&wire.TaskOptions{Func: "raise", NumReturns: 2, MaxRetries: 3})
	id := s.raises(first, s.grant(worker))
	s.wantValue(id, "inner")
	then := s.submit(simple, wire.Arg{Ref: first.ID.Return(0)})
	last := s.submit(simple, wire.Arg{Ref: then.ID.Return(0)})
	s.from(driver, &wire.Release{IDs: []ids.ObjectID{first.ID.Return(0), first.ID.Return(1), then.ID.Return(0)}})
	s.wantValue(id, "inner")
	if r := s.result(last.ID.Return(0)); len(r.Result.Err.AllRefs()) != 1 || r.Result.Err.AllRefs()[0] != id {
		t.Errorf("the last one failed with %+v", r.Result.Err)
	}
	s.from(driver, &wire.Release{IDs: []ids.ObjectID{last.ID.Return(0)}})
	s.wantError(id, errs.CodeObjectFreed)
	s.wantEmpty()
}

// An attempt that is tried again holds nothing.
func TestAnAttemptTriedAgainHoldsNothing(t *testing.T) {
	s := newScript(t, Config{})
	spec := s.submit(&wire.TaskOptions{Func: "raise", NumReturns: 1, MaxRetries: 1, RetryExceptions: true})
	l := s.grant(worker)
	x := s.executed(worker)
	s.from(worker, &wire.PutValue{ID: spec.ID.Put(1), Value: wire.Value{Data: []byte("first")}})
	s.failed(worker, l, x, raised(spec.ID.Put(1)))
	again := s.executed(worker)
	s.from(worker, &wire.Release{IDs: []ids.ObjectID{spec.ID.Put(1)}})
	s.wantError(spec.ID.Put(1), errs.CodeObjectFreed)
	s.from(worker, &wire.PutValue{ID: spec.ID.Put(2), Value: wire.Value{Data: []byte("second")}})
	s.failed(worker, l, again, raised(spec.ID.Put(2)))
	s.from(worker, &wire.Release{IDs: []ids.ObjectID{spec.ID.Put(2)}})
	s.wantValue(spec.ID.Put(2), "second")
	s.from(driver, &wire.Release{IDs: []ids.ObjectID{spec.ID.Return(0)}})
	s.wantEmpty()
}

// A core made of the log holds what errors have references to.
func TestErrorsHoldInACoreMadeAgain(t *testing.T) {
	s := newScript(t, Config{})
	spec := s.submit(&wire.TaskOptions{Func: "raise", NumReturns: 1})
	id := s.raises(spec, s.grant(worker))
	rows := s.submit(&wire.TaskOptions{Func: "rows", NumReturns: wire.Streaming})
	row := s.raises(rows, s.grant(worker))
	s.rebuild(1)
	mine := holds(1)
	mine.Handles = []ids.ObjectID{spec.ID.Return(0), rows.ID.Stream()}
	s.from(driver, mine)
	s.from(worker, holds(1))
	s.from(worker2, holds(1))
	s.wantValue(id, "inner")
	s.wantValue(row, "inner")
	s.from(driver, &wire.Release{IDs: []ids.ObjectID{spec.ID.Return(0), rows.ID.Stream()}})
	s.wantEmpty()
}

// A stream's error holds until its reader has said that it holds what is in it.
func TestAStreamsErrorHoldsUntilItsReaderHas(t *testing.T) {
	s := newScript(t, Config{})
	spec := s.submit(&wire.TaskOptions{Func: "rows", NumReturns: wire.Streaming})
	id := s.raises(spec, s.grant(worker))
	s.from(driver, &wire.StreamNext{Task: spec.ID})
	got := sent[*wire.StreamItem](s, driver)
	if len(got) != 1 || len(got[0].Result.Err.AllRefs()) != 1 {
		t.Fatalf("its reader hears %v", got)
	}
	s.wantValue(id, "inner")
	s.from(driver, &wire.AddRef{ID: id}, &wire.Release{IDs: []ids.ObjectID{spec.ID.Stream()}})
	s.wantValue(id, "inner")
	s.from(driver, &wire.Release{IDs: []ids.ObjectID{id}})
	s.wantEmpty()
}

// What an actor died of holds as long as the actor is known, and the calls that fail for it.
func TestTheEndOfAnActorHoldsWhatItHasReferencesTo(t *testing.T) {
	s := newScript(t, Config{})
	a, l := s.spawn(mortal(1), worker)
	s.kill(worker, errs.CodeWorkerCrashed, 0, l)
	lease := s.grant(worker2)
	x := s.executed(worker2)
	id := a.ID.Put(1)
	s.from(worker2, &wire.PutValue{ID: id, Value: wire.Value{Data: []byte("inner")}})
	s.failed(worker2, lease, x, raised(id))
	s.from(worker2, &wire.Release{IDs: []ids.ObjectID{id}})
	s.wantValue(id, "inner")
	call := s.call(a, 1)
	s.from(driver, &wire.Release{IDs: []ids.ObjectID{a.ID.Return(0)}})
	s.wantValue(id, "inner")
	s.from(driver, &wire.Release{IDs: []ids.ObjectID{call.ID.Return(0)}})
	s.wantError(id, errs.CodeObjectFreed)
	s.wantEmpty()
}
