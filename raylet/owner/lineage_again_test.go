package owner

import (
	"slices"
	"strings"
	"testing"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/objectstore"
	"mobula/raylet/owner/task"
	"mobula/raylet/sched"
	"mobula/wire"
)

// A value that is made again may lie elsewhere than the first time: it is read back from the record that
// has it. Here it was in the store, then in the message.
func TestAValueMadeAgainIsReadBack(t *testing.T) {
	s := newScript(t, Config{InlineBudget: 1500})
	a := s.makeStored(simple)
	id := a.ID.Return(0)
	s.step(FromStore{Msg: objectstore.Lost{ID: id}})
	s.from(driver, &wire.Get{ID: id})
	if s.state(a) != task.PendingNode {
		t.Fatalf("the task is %v", s.state(a))
	}
	l := s.grant(worker)
	s.done(worker, l, s.executed(worker), inline(strings.Repeat("x", 2000)))
	if p := told[objectstore.Pack](s); len(p) != 1 || len(p[0].Values) != 1 {
		t.Fatalf("over the budget: %+v", p)
	}
	s.step(FromStore{Msg: objectstore.Packed{ID: id, Size: 2000}})
	s.from(driver, &wire.Get{ID: id, Fetch: true})
	s.step(FromStore{Msg: objectstore.Lost{ID: id, Client: driver}})
	for reads := 0; ; reads++ {
		i := slices.IndexFunc(s.out, func(e Effect) bool { return e.Kind == Fetch })
		if i < 0 {
			break
		}
		if reads > 5 {
			t.Fatal("it is read for ever")
		}
		s.step(Fetched{Token: s.out[i].Token, Record: s.logs[s.out[i].Position()]})
	}
	r := sent[*wire.Resolved](s, driver)
	if len(r) != 1 || r[0].Result.Kind != wire.ResultInline || len(r[0].Result.Value.Data) != 2000 {
		t.Errorf("the get is answered with %+v", r)
	}
}

// A task that ran again for somebody who wants its result no more, by the end, can run again still for who may need it later.
func TestAResultThatNobodyWaitsForAnyMoreCanBeMadeAgain(t *testing.T) {
	s := newScript(t, Config{})
	a := s.makeStored(simple)
	arg := wire.Arg{Ref: a.ID.Return(0)}
	b := s.makeStored(simple, arg)
	c := s.makeStored(simple, arg)
	s.from(driver, &wire.Release{IDs: []ids.ObjectID{a.ID.Return(0)}})
	again := func(of *wire.TaskSpec) wire.ExecTask {
		t.Helper()
		s.step(FromStore{Msg: objectstore.Lost{ID: of.ID.Return(0)}})
		s.from(driver, &wire.Get{ID: of.ID.Return(0)})
		s.grant(worker)
		x := s.executed(worker)
		if x.Spec.ID != a.ID {
			t.Fatalf("pushed is %v, want what makes the argument", x.Spec.ID)
		}
		return x
	}
	x := again(c)
	s.from(driver, &wire.Cancel{Task: c.ID}, &wire.Release{IDs: []ids.ObjectID{c.ID.Return(0)}})
	s.from(worker, &wire.Seal{ID: a.ID.Return(0), Attempt: x.Attempt, Size: 8})
	s.done(worker, s.lease, x, stored())
	s.step(FromSched{sched.Reclaim{Lease: s.lease}})
	again(b)
}

// A return that was dropped while another one is held is made again when the task is submitted anew, as by a parent that runs again:
// though nothing of it lay in the store, and so nothing was kept to make it with.
func TestADroppedReturnIsMadeAgainForWhoSubmitsAnew(t *testing.T) {
	for _, retries := range []int32{0, 1, -1} {
		s := newScript(t, Config{})
		arg := s.submit(simple)
		s.done(worker, s.grant(worker), s.executed(worker), inline("arg"))
		spec := s.submit(&wire.TaskOptions{Func: simple.Func, NumReturns: 2, MaxRetries: retries}, wire.Arg{Ref: arg.ID.Return(0)})
		x := s.executed(worker)
		s.done(worker, s.lease, x, inline("a"), inline("b"))
		for range 3 {
			s.from(driver, &wire.Release{IDs: []ids.ObjectID{spec.ID.Return(1)}})
			user := s.spec(simple, wire.Arg{Ref: spec.ID.Return(1)})
			s.from(driver, &wire.Submit{Spec: spec}, &wire.Submit{Spec: user})
			x = s.executed(worker)
			if x.Spec != spec {
				t.Fatalf("pushed %v, want %v once more", x.Spec.ID, spec.ID)
			}
			s.done(worker, s.lease, x, inline("a"), inline("b"))
			u := s.executed(worker)
			if u.Spec != user {
				t.Fatalf("pushed %v, want what takes the return", u.Spec.ID)
			}
			s.done(worker, s.lease, u, inline("c"))
			if r := s.result(spec.ID.Return(1)); string(r.Result.Value.Data) != "b" {
				t.Fatalf("the get is answered with %+v", r)
			}
		}
		if r := s.result(spec.ID.Return(0)); string(r.Result.Value.Data) != "a" {
			t.Fatalf("the get is answered with %+v", r)
		}
	}
}

// A task that has failed is not run for it: the dropped return has the error of the others again.
func TestADroppedErrorIsThereForWhoSubmitsAnew(t *testing.T) {
	s := newScript(t, Config{})
	spec := s.submit(&wire.TaskOptions{Func: "two", NumReturns: 2})
	l := s.grant(worker)
	s.failed(worker, l, s.executed(worker), errs.New(errs.CodeTaskFailed, "it fails"))
	s.from(driver, &wire.Release{IDs: []ids.ObjectID{spec.ID.Return(1)}})
	s.from(driver, &wire.Submit{Spec: spec})
	s.wantError(spec.ID.Return(1), errs.CodeTaskFailed)
	s.wantError(spec.ID.Return(0), errs.CodeTaskFailed)
}

// Of a task that ran again for one of its returns, the others keep their values, also over a restart: whether it gave other ones then, or failed.
func TestAReturnStaysWhenItsTaskRunsAgainForAnother(t *testing.T) {
	for _, fails := range []bool{false, true} {
		s := newScript(t, Config{})
		spec := s.submit(&wire.TaskOptions{Func: "two", NumReturns: 2, MaxRetries: 1})
		run := func(w ids.ClientID, first string) {
			l := s.grant(w)
			x := s.executed(w)
			s.from(w, &wire.Seal{ID: spec.ID.Return(1), Attempt: x.Attempt, Size: 8})
			s.done(w, l, x, inline(first), stored())
			s.step(FromSched{sched.Reclaim{Lease: l}})
		}
		run(worker, "a")
		s.step(FromStore{Msg: objectstore.Lost{ID: spec.ID.Return(1)}})
		if fails {
			l := s.grant(worker2)
			s.failed(worker2, l, s.executed(worker2), errs.New(errs.CodeTaskFailed, "it fails"))
			s.wantError(spec.ID.Return(1), errs.CodeTaskFailed)
		} else {
			run(worker2, "b")
		}
		for restarts := range uint64(2) {
			if r := s.result(spec.ID.Return(0)); string(r.Result.Value.Data) != "a" {
				t.Errorf("fails: %v, after %d restarts it is %+v", fails, restarts, r)
			}
			h := holds(restarts + 1)
			h.Handles = []ids.ObjectID{spec.ID.Return(0), spec.ID.Return(1)}
			s.answered(restarts+1, map[ids.ClientID]*wire.Holdings{driver: h})
		}
	}
}
