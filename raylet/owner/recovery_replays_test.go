package owner

import (
	"slices"
	"testing"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/objectstore"
	"mobula/raylet/owner/object"
	"mobula/raylet/owner/task"
	"mobula/raylet/sched"
	"mobula/wire"
)

// replays rebuilds the core, whose driver says first what it holds and then sends some messages once more, as one does that finds its node
// again. No worker has anything.
func (s *script) replays(epoch uint64, has []ids.ObjectID, msgs ...wire.Msg) {
	s.t.Helper()
	s.rebuild(epoch)
	first, then := holds(0), holds(epoch)
	first.Handles, then.Handles = has, has
	s.from(worker, holds(epoch))
	s.from(worker2, holds(epoch))
	s.from(driver, append(append([]wire.Msg{first}, msgs...), then)...)
	if s.c.Gauges().Recovering {
		s.t.Fatal("it waits still")
	}
}

// What a driver had of a task is released, and the task forgotten. After a restart the driver submits it once more, and it does not run again; nor
// does it when the core is lost a second time.
func TestForgottenTasksDoNotRunAgain(t *testing.T) {
	s := newScript(t, Config{})
	spec := s.submit(simple)
	l := s.grant(worker)
	s.done(worker, l, s.executed(worker), inline("v"))
	s.from(driver, &wire.Release{IDs: []ids.ObjectID{spec.ID.Return(0)}})
	unheld := s.submit(&wire.TaskOptions{Func: "unheld"})
	l = s.grant(worker2)
	s.done(worker2, l, s.executed(worker2))
	kept, never := s.submit(simple), s.spec(simple)
	for epoch := range uint64(2) {
		s.replays(epoch+1, []ids.ObjectID{kept.ID.Return(0), never.ID.Return(0)},
			&wire.Submit{Spec: spec}, &wire.Submit{Spec: unheld}, &wire.Submit{Spec: kept}, &wire.Submit{Spec: never})
		if s.state(spec) != task.None || s.state(unheld) != task.None {
			t.Errorf("restart %d: what was done is %v and %v", epoch, s.state(spec), s.state(unheld))
		}
		if s.state(kept) != task.PendingNode || s.state(never) != task.PendingNode {
			t.Errorf("restart %d: what was not is %v and %v", epoch, s.state(kept), s.state(never))
		}
	}
	s.wantError(spec.ID.Return(0), errs.CodeObjectFreed)
}

// The same of an actor's calls, and of an actor that has ended: neither it nor its name comes back.
func TestForgottenCallsDoNotRunAgain(t *testing.T) {
	s := newScript(t, Config{})
	a, l := s.spawn(&wire.TaskOptions{Func: "counter", NumReturns: 1, MaxRestarts: -1}, worker)
	gone, _ := s.spawn(&wire.TaskOptions{Func: "counter", NumReturns: 1}, worker2)
	s.from(driver, &wire.KillActor{Actor: ids.ActorID(gone.ID)}, &wire.Release{IDs: []ids.ObjectID{gone.ID.Return(0)}})
	first := s.call(a, 1)
	s.done(worker, l, s.executed(worker), inline("1"))
	s.from(driver, &wire.Release{IDs: []ids.ObjectID{first.ID.Return(0)}})
	if s.state(first) != task.None || s.state(gone) != task.None {
		t.Fatalf("the call is %v, the actor that was killed %v", s.state(first), s.state(gone))
	}
	s.replays(1, []ids.ObjectID{a.ID.Return(0)}, &wire.Submit{Spec: a}, &wire.Submit{Spec: gone}, &wire.Submit{Spec: first})
	if s.state(first) != task.None || s.state(gone) != task.None {
		t.Errorf("the call is %v, the actor that was killed %v", s.state(first), s.state(gone))
	}
	if s.state(a) == task.None {
		t.Error("the actor that lives is forgotten")
	}
}

// A put that was released is not there again; what was written for it is dropped.
func TestForgottenPutsDoNotComeBack(t *testing.T) {
	s := newScript(t, Config{})
	small, large, kept := s.root.Put(1), s.root.Put(2), s.root.Put(3)
	put := func(id ids.ObjectID) wire.Msg { return &wire.PutValue{ID: id, Value: wire.Value{Data: []byte("v")}} }
	seal := &wire.Seal{ID: large, Size: 1 << 20}
	s.from(driver, put(small), seal, put(kept))
	s.from(driver, &wire.Release{IDs: []ids.ObjectID{small, large}})
	s.replays(1, []ids.ObjectID{kept}, put(small), seal, put(kept))
	if s.c.object(small) != nil || s.c.object(large) != nil || s.c.object(kept) == nil {
		t.Errorf("the puts are %v, %v and %v", s.c.object(small), s.c.object(large), s.c.object(kept))
	}
	if d := told[objectstore.DropAttempt](s); len(d) != 1 || d[0].ID != large {
		t.Errorf("dropped: %+v", d)
	}
	if f := told[objectstore.SealObject](s); len(f) != 0 {
		t.Errorf("sealed: %+v", f)
	}
}

// So it is with a put of which lineage needs the name still. That its value was freed is known after each restart: the store is not
// asked for it.
func TestFreedPutsOfLineageDoNotComeBack(t *testing.T) {
	s := newScript(t, Config{})
	put := s.root.Put(1)
	seal := &wire.Seal{ID: put, Size: 1 << 20}
	s.from(driver, seal)
	spec := s.makeStored(simple, wire.Arg{Ref: put})
	s.from(driver, &wire.Release{IDs: []ids.ObjectID{put}})
	for epoch := range uint64(2) {
		if o := s.c.object(put); o == nil || o.state != object.Freed {
			t.Fatalf("restart %d: the put is %+v", epoch, o)
		}
		s.replays(epoch+1, []ids.ObjectID{spec.ID.Return(0)}, seal, &wire.Submit{Spec: spec})
		if f := told[objectstore.SealObject](s); len(f) != 0 {
			t.Errorf("restart %d: sealed: %+v", epoch, f)
		}
	}
	s.from(driver, &wire.Release{IDs: []ids.ObjectID{spec.ID.Return(0)}})
	if s.c.object(put) != nil {
		t.Error("the put is there when its lineage is gone")
	}
}

// A put of a task's is known to be freed too, though what was made of it is found lost while the rebuilt core waits for its clients: that cannot be made
// again, and the store is not asked for the put.
func TestAFreedPutOfATaskIsKnownToBeFreed(t *testing.T) {
	for _, lost := range []bool{false, true} { // the core, before
		s := newScript(t, Config{})
		maker := s.submit(simple)
		l := s.grant(worker)
		x, put := s.executed(worker), maker.ID.Put(1)
		s.from(worker, &wire.Seal{ID: put, Attempt: x.Attempt, Size: 1 << 20})
		s.done(worker, l, x, wire.Result{Kind: wire.ResultInline, Value: wire.Value{Data: []byte("its put"), Refs: []ids.ObjectID{put}}})
		s.step(FromSched{sched.Reclaim{Lease: l}})
		s.from(driver, &wire.AddRef{ID: put})
		s.from(worker, &wire.Release{IDs: []ids.ObjectID{put}})
		spec := s.makeStored(simple, wire.Arg{Ref: put})
		s.from(driver, &wire.Release{IDs: []ids.ObjectID{put, maker.ID.Return(0)}})
		if lost {
			s.rebuild(1)
		}
		s.step(FromStore{Msg: objectstore.Lost{ID: spec.ID.Return(0), Err: errs.New(errs.CodeObjectLost, "bad disk")}})
		if lost {
			h := holds(1)
			h.Handles = []ids.ObjectID{spec.ID.Return(0)}
			s.from(driver, h)
			s.from(worker, holds(1))
			s.from(worker2, holds(1))
		}
		s.wantError(spec.ID.Return(0), errs.CodeObjectLost)
	}
}

// A worker's task that runs again wants what it has submitted before, even if that was forgotten.
func TestAWorkersForgottenTaskRunsAgain(t *testing.T) {
	s := newScript(t, Config{})
	parent := s.submit(simple)
	lp := s.grant(worker)
	x := s.executed(worker)
	child := &wire.TaskSpec{ID: ids.Derive(parent.ID, 1), Parent: parent.ID, Opts: simple}
	s.from(worker, &wire.Submit{Spec: child})
	lc := s.grant(worker2)
	s.done(worker2, lc, s.executed(worker2), inline("v"))
	s.from(worker, &wire.Release{IDs: []ids.ObjectID{child.ID.Return(0)}})
	if s.state(child) != task.None {
		t.Fatalf("the child is %v", s.state(child))
	}
	s.rebuild(1)
	h, w := holds(1), holds(1)
	h.Handles = []ids.ObjectID{parent.ID.Return(0)}
	w.Tasks = []wire.Attempt{{Task: parent.ID, Attempt: x.Attempt, Lease: lp}}
	s.from(driver, h)
	s.from(worker2, holds(1))
	s.from(worker, w, &wire.Submit{Spec: child})
	if s.state(child) != task.PendingNode {
		t.Errorf("the child is %v", s.state(child))
	}
}

// With a driver's holdings all is handled that it sent before, also what is passed over, and the driver is told so: what it sent after them is all that is
// under way.
func TestTheHoldingsSettleTheCredit(t *testing.T) {
	s := newScript(t, Config{})
	forgotten, never := s.submit(simple), s.spec(simple)
	l := s.grant(worker)
	s.done(worker, l, s.executed(worker), inline("v"))
	s.from(driver, &wire.Release{IDs: []ids.ObjectID{forgotten.ID.Return(0)}})
	for epoch := range uint64(2) { // what comes after them is not given back at once, and counts once
		s.rebuild(epoch + 1)
		s.from(worker, holds(epoch+1))
		s.from(worker2, holds(epoch+1))
		after := &wire.PutValue{ID: s.root.Put(uint32(epoch) + 1)}
		s.from(driver, holds(0), &wire.Submit{Spec: forgotten}, &wire.Submit{Spec: never}, holds(epoch+1), after)
		want := []int64{s.c.cfg.CreditWindow, 0} // the window, which a lost core may not have told
		var got []int64
		for _, m := range sent[*wire.Credit](s, driver) {
			got = append(got, m.Bytes)
		}
		if !slices.Equal(got, want) {
			t.Errorf("restart %d: the driver is given %v, want %v", epoch, got, want)
		}
		if cl := s.c.client(driver); cl.used != wire.Cost(after) || len(s.c.creditors) != 1 {
			t.Errorf("restart %d: %d bytes are to be given back, want %d, to %d clients", epoch, cl.used, wire.Cost(after), len(s.c.creditors))
		}
		if m := sent[*wire.Credit](s, worker); len(m) != 2 || m[1].Bytes != 0 {
			t.Errorf("restart %d: a worker is told %v", epoch, m)
		}
	}
}

// A forget record is needed as long as a driver may send again what it names: a driver keeps what it sent last, and all of which it does not know yet that it
// was handled. What it sends again to a node that has come back lets it keep no less.
func TestAForgetRecordLastsAsLongAsTheReplayQueue(t *testing.T) {
	s := newScript(t, Config{})
	s.trust = true
	spec := s.submit(simple)
	l := s.grant(worker)
	s.done(worker, l, s.executed(worker), inline("v"))
	s.from(driver, &wire.Release{IDs: []ids.ObjectID{spec.ID.Return(0)}})
	small := &wire.PutValue{ID: s.root.Put(1)}
	many := make([]wire.Msg, wire.Replayed)
	for i := range many {
		many[i] = small
	}
	for _, restarts := range []bool{false, true} {
		if restarts {
			s.replays(1, []ids.ObjectID{small.ID}, append([]wire.Msg{&wire.Submit{Spec: spec}}, many...)...)
			if s.state(spec) != task.None || len(s.lapsed()) > 0 {
				t.Fatalf("what was sent again counts: %v may go, and the task is %v", s.lapsed(), s.state(spec))
			}
		}
		s.from(driver, many...)
		if got := s.lapsed(); len(got) > 0 {
			t.Fatalf("%v may go while the driver may not know that the task was handled", got)
		}
	}
	s.from(driver, &wire.PutValue{ID: small.ID, Value: wire.Value{Data: make([]byte, 2*s.c.cfg.CreditWindow)}})
	if got := s.lapsed(); len(got) > 0 {
		t.Fatalf("%v may go, though one message may be larger than the credit", got)
	}
	s.from(driver, small)
	if got := s.lapsed(); len(got) != 1 {
		t.Errorf("%v may go, want the record of the task", got)
	}
}
