package owner

import (
	"errors"
	"testing"

	"mobula/internal/errs"
	"mobula/objectstore"
	"mobula/wire"
)

// What only a dropped message said fails with the panic as its error: a task, what it feeds, a put, and calls of an actor.
func TestDroppedMessageFailsWhatItWasToMake(t *testing.T) {
	s := newScript(t, Config{})
	lost, put := s.spec(simple), s.root.Put(1)
	stream := s.spec(&wire.TaskOptions{Func: "items", NumReturns: wire.Streaming})
	a := s.spec(counter)
	a.Kind = wire.TaskActorCreate
	why := errs.New(errs.CodeComponentFailed, "two cores panicked")
	poison := Poisoned{Client: driver, Err: why, Msgs: []wire.Msg{
		&wire.Submit{Spec: lost}, &wire.Submit{Spec: stream}, &wire.Submit{Spec: a}, &wire.PutValue{ID: put}, &wire.Release{}}}
	for epoch := uint64(7); epoch < 9; epoch++ { // the core after next is told as well
		s.rebuild(epoch)
		s.step(poison)
		reader := s.submit(simple, wire.Arg{Ref: lost.ID.Return(0)})
		h := holds(epoch)
		h.Handles = append(h.Handles, lost.ID.Return(0), put, reader.ID.Return(0))
		s.from(driver, h)
		s.from(worker, holds(epoch))
		s.from(worker2, holds(epoch))
		s.wantError(lost.ID.Return(0), errs.CodeComponentFailed)
		s.wantError(put, errs.CodeComponentFailed)
		if r := s.result(reader.ID.Return(0)); r.Result.Kind != wire.ResultError || !errors.Is(r.Result.Err, errs.ErrComponentFailed) {
			t.Errorf("the task that was to read it: %+v", r.Result)
		}
		s.from(driver, &wire.StreamNext{Task: stream.ID})
		if m := sent[*wire.StreamItem](s, driver); len(m) != 1 || m[0].Result.Err == nil || m[0].Result.Err.Code != errs.CodeComponentFailed {
			t.Errorf("the stream: %+v", m)
		}
		call := s.call(a, epoch)
		r := s.result(call.ID.Return(0))
		if r.Result.Kind != wire.ResultError || r.Result.Err.Code != errs.CodeActorDied || r.Result.Err.Cause == nil {
			t.Errorf("the call: %+v", r.Result)
		}
	}
}

// A worker whose dropped message said what nothing can say again has to go: what it ran is retried.
func TestDroppedMessageOfAWorkerEndsIt(t *testing.T) {
	s := newScript(t, Config{})
	spec := s.submit(&wire.TaskOptions{Func: "f", NumReturns: 1, MaxRetries: 1})
	l := s.grant(worker)
	x := s.executed(worker)
	s.rebuild(7)
	s.step(Poisoned{Client: worker, Err: errs.New(errs.CodeComponentFailed, "two cores panicked"), Msgs: []wire.Msg{&wire.Done{Task: x.Spec.ID, Attempt: x.Attempt, Lease: l}}})
	if m := sent[*wire.Bye](s, worker); len(m) != 1 || m[0].Err == nil {
		t.Fatalf("the worker is sent %+v", m)
	}
	h := holds(7)
	h.Handles = append(h.Handles, spec.ID.Return(0))
	s.from(driver, h)
	s.from(worker2, holds(7))
	s.done(worker2, s.grant(worker2), s.executed(worker2), inline("42"))
	if r := s.result(spec.ID.Return(0)); string(r.Result.Value.Data) != "42" {
		t.Errorf("got %+v", r.Result)
	}
}

// What a client said after the dropped message is not heard: it may need that. The attempt that it ran is made again, whole.
func TestWhatFollowsADroppedMessageIsNotHeard(t *testing.T) {
	s := newScript(t, Config{})
	spec := s.submit(&wire.TaskOptions{Func: "items", NumReturns: wire.Streaming, MaxRetries: 1})
	l := s.grant(worker)
	x := s.executed(worker)
	item := func(i uint32) *wire.StreamItem {
		return &wire.StreamItem{Task: spec.ID, Attempt: x.Attempt, Index: i, Result: inline("x")}
	}
	s.rebuild(7)
	s.step(Poisoned{Client: worker, Err: errs.New(errs.CodeComponentFailed, "two cores panicked"), Msgs: []wire.Msg{item(0)}})
	s.from(worker, item(1), &wire.Done{Task: spec.ID, Attempt: x.Attempt, Lease: l, Items: 2})
	h := holds(7)
	h.Handles = append(h.Handles, spec.ID.Stream())
	s.from(driver, h)
	s.from(worker2, holds(7))
	if st := s.state(spec); st.Terminal() {
		t.Fatalf("it is %v, and its first item was dropped", st)
	}
	s.grant(worker2)
	if again := s.executed(worker2); again.Spec.ID != spec.ID {
		t.Errorf("what runs is %v", again.Spec.ID)
	}
}

// Nobody seals any more what the dropped message was to seal: the store gets its memory back.
func TestADroppedSealGivesUpWhatWasWritten(t *testing.T) {
	s := newScript(t, Config{})
	put := s.root.Put(1)
	s.rebuild(7)
	s.step(Poisoned{Client: driver, Err: errs.New(errs.CodeComponentFailed, "two cores panicked"), Msgs: []wire.Msg{&wire.Seal{ID: put, Size: 8}}})
	if m := told[objectstore.DropAttempt](s); len(m) != 1 || m[0] != (objectstore.DropAttempt{ID: put, Client: driver}) {
		t.Errorf("the store is told %+v", m)
	}
}
