package owner

import (
	"slices"
	"testing"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/wire"
)

// promising submits a task that promises the results of its first n children, and begins it.
func promising(t *testing.T, s *script, n uint32) (*wire.TaskSpec, []*wire.TaskSpec) {
	t.Helper()
	spec := s.spec(simple)
	var kids []*wire.TaskSpec
	for i := range n {
		spec.Promises = append(spec.Promises, i+1)
		kid := s.spec(simple)
		kid.ID, kid.Parent = ids.Derive(spec.ID, uint64(i+1)), spec.ID
		kids = append(kids, kid)
	}
	s.from(driver, &wire.Submit{Spec: spec})
	return spec, kids
}

func TestAPromiseIsKeptByItsTask(t *testing.T) {
	s := newScript(t, Config{})
	spec, kids := promising(t, s, 2)
	first := kids[0].ID.Return(0)
	user := s.submit(simple, wire.Arg{Ref: first}) // it may be used before there is a task
	s.from(driver, &wire.Get{ID: first, Fetch: true})
	l := s.grant(worker)
	x := s.executed(worker)
	if x.Spec.ID != spec.ID {
		t.Fatalf("pushed %v", x.Spec.ID)
	}
	s.from(worker, &wire.Submit{Spec: kids[0]})
	s.done(worker, l, x, inline("over")) // the other child never comes
	k := s.executed(worker)
	if k.Spec != kids[0] {
		t.Fatalf("pushed %v", k.Spec.ID)
	}
	s.from(worker, &wire.Release{IDs: []ids.ObjectID{first}})
	s.done(worker, l, k, inline("kept"))
	if r := sent[*wire.Resolved](s, driver); len(r) != 1 || string(r[0].Result.Value.Data) != "kept" {
		t.Fatalf("the get is answered with %+v", r)
	}
	if u := s.executed(worker); u.Spec != user {
		t.Errorf("pushed %v, want what takes the promised result", u.Spec.ID)
	}
	s.wantError(kids[1].ID.Return(0), errs.CodeReturnMismatch)
}

func TestAPromiseFailsWithWhoGaveIt(t *testing.T) {
	s := newScript(t, Config{})
	spec, kids := promising(t, s, 1)
	id := kids[0].ID.Return(0)
	s.from(driver, &wire.Get{ID: id})
	s.from(driver, &wire.Cancel{Task: spec.ID})
	if r := sent[*wire.Resolved](s, driver); len(r) != 1 || r[0].Result.Err == nil || r[0].Result.Err.Code != errs.CodeCancelled {
		t.Fatalf("the get is answered with %+v", r)
	}
	s.from(driver, &wire.Release{IDs: []ids.ObjectID{id, spec.ID.Return(0)}})
	if n := len(s.c.placeholders); n != 0 {
		t.Errorf("%d strays stay", n)
	}
	if s.c.tasks.n != 0 {
		t.Error("the record stays")
	}
}

// Nobody holds what was promised: the task that comes is as any other, and leaves nothing behind.
func TestAPromiseGivenUpLeavesNothing(t *testing.T) {
	s := newScript(t, Config{})
	spec, kids := promising(t, s, 1)
	s.from(driver, &wire.Release{IDs: []ids.ObjectID{kids[0].ID.Return(0)}})
	l := s.grant(worker)
	x := s.executed(worker)
	s.done(worker, l, x, inline("over"))
	s.from(driver, &wire.Release{IDs: []ids.ObjectID{spec.ID.Return(0)}})
	if len(s.c.placeholders) != 0 || s.c.tasks.n != 0 {
		t.Errorf("%d strays and %d tasks stay", len(s.c.placeholders), s.c.tasks.n)
	}
}

// A promise is in the log with who gave it: who waits for it waits on over a restart of the owner.
func TestAPromiseOutlivesTheCore(t *testing.T) {
	s := newScript(t, Config{})
	spec, kids := promising(t, s, 2)
	first := kids[0].ID.Return(0)
	l := s.grant(worker)
	x := s.executed(worker)
	s.rebuild(3)
	h := holds(3)
	h.Handles = []ids.ObjectID{spec.ID.Return(0), first} // not the second
	h.Gets = []wire.Get{{ID: first, Fetch: true}}
	s.from(driver, h)
	s.from(worker2, holds(3))
	h = holds(3)
	h.Tasks = []wire.Attempt{{Task: spec.ID, Attempt: x.Attempt, Lease: l}}
	s.from(worker, h)
	if n := len(s.c.placeholders); n != 1 {
		t.Fatalf("%d promises, want the one that is held", n)
	}
	s.from(worker, &wire.Submit{Spec: kids[0]})
	s.done(worker, l, x, inline("over"))
	k := s.executed(worker)
	s.done(worker, l, k, inline("kept"))
	if r := sent[*wire.Resolved](s, driver); len(r) != 1 || string(r[0].Result.Value.Data) != "kept" {
		t.Fatalf("the get is answered with %+v", r)
	}
}

// unneededOf gives the numbers that a worker is told of in the last step.
func unneededOf(s *script, task ids.TaskID) (ns []uint32) {
	s.t.Helper()
	for _, m := range sent[*wire.Unneeded](s, worker) {
		if m.Task != task {
			s.t.Fatalf("of %v: it promised nothing", m.Task)
		}
		ns = append(ns, m.Numbers...)
	}
	slices.Sort(ns)
	return ns
}

func (s *script) wantUnneeded(task ids.TaskID, want ...uint32) {
	s.t.Helper()
	if got := unneededOf(s, task); !slices.Equal(got, want) {
		s.t.Fatalf("the worker is told that %v are not needed, want %v", got, want)
	}
}

// Who runs a task learns which of its promises nobody needs any more: of a child that it has not
// submitted, of one that runs, and of one that is there already.
func TestWhatNobodyNeedsIsTold(t *testing.T) {
	s := newScript(t, Config{})
	spec, kids := promising(t, s, 3)
	l := s.grant(worker)
	s.executed(worker)
	s.wantUnneeded(spec.ID)
	s.from(driver, &wire.Release{IDs: []ids.ObjectID{kids[0].ID.Return(0)}})
	s.wantUnneeded(spec.ID, 1)
	for _, kid := range kids[1:] {
		s.from(worker, &wire.Submit{Spec: kid}, &wire.Get{ID: kid.ID.Return(0)})
	}
	l2 := s.grant(worker2)
	x := s.executed(worker2)
	s.done(worker2, l2, x, inline("made"))
	s.wantUnneeded(spec.ID)
	s.from(driver, &wire.Release{IDs: []ids.ObjectID{kids[1].ID.Return(0), kids[2].ID.Return(0)}})
	s.wantUnneeded(spec.ID, 2, 3)
	s.from(worker, &wire.Cancel{Task: kids[2].ID}, &wire.Release{IDs: []ids.ObjectID{kids[1].ID.Return(0), kids[2].ID.Return(0)}})
	s.from(driver, &wire.Release{IDs: []ids.ObjectID{spec.ID.Return(0)}})
	s.from(worker, &wire.Done{Task: spec.ID, Attempt: 1, Lease: l, Results: []wire.Result{inline("over")}})
	s.from(worker2, &wire.Done{Task: kids[2].ID, Attempt: 1, Lease: l2, Err: errs.New(errs.CodeCancelled, "it was told")})
	if n := len(s.c.placeholders) + len(s.c.promises.open) + s.c.tasks.n; n != 0 {
		t.Errorf("%d strays, %d promises and %d tasks stay", len(s.c.placeholders), len(s.c.promises.open), s.c.tasks.n)
	}
}

// A result is needed by tasks that take it, by objects that contain it and by whoever waits for it.
func TestWhatSomebodyNeedsIsNotGivenUp(t *testing.T) {
	s := newScript(t, Config{})
	spec, kids := promising(t, s, 3)
	taken, inside, asked := kids[0].ID.Return(0), kids[1].ID.Return(0), kids[2].ID.Return(0)
	s.grant(worker)
	s.executed(worker)
	user := s.submit(simple, wire.Arg{Ref: taken})
	box := s.root.Put(1)
	s.from(driver, &wire.PutValue{ID: box, Value: wire.Value{Refs: []ids.ObjectID{inside}}})
	s.from(worker2, &wire.AddRef{ID: asked}, &wire.Get{ID: asked})
	s.from(driver, &wire.Release{IDs: []ids.ObjectID{taken, inside, asked}})
	s.wantUnneeded(spec.ID)
	s.from(worker2, &wire.Release{IDs: []ids.ObjectID{asked}}) // it waits for an answer still
	s.wantUnneeded(spec.ID)
	s.from(worker2, &wire.Unget{ID: asked})
	s.wantUnneeded(spec.ID, 3)
	s.from(driver, &wire.Release{IDs: []ids.ObjectID{box}})
	s.wantUnneeded(spec.ID, 2)
	s.from(driver, &wire.Cancel{Task: user.ID})
	s.wantUnneeded(spec.ID, 1)
}

// What was given up is told to every attempt, and by a core that was built again.
func TestWhatNobodyNeedsIsToldAgain(t *testing.T) {
	s := newScript(t, Config{})
	spec, kids := promising(t, s, 2)
	s.from(driver, &wire.Release{IDs: []ids.ObjectID{kids[1].ID.Return(0)}})
	s.wantUnneeded(spec.ID) // it does not run yet
	l := s.grant(worker)
	x := s.executed(worker)
	s.wantUnneeded(spec.ID, 2)
	s.rebuild(3)
	h := holds(3)
	h.Handles = []ids.ObjectID{spec.ID.Return(0), kids[0].ID.Return(0)}
	s.from(driver, h)
	s.from(worker2, holds(3))
	h = holds(3)
	h.Tasks = []wire.Attempt{{Task: spec.ID, Attempt: x.Attempt, Lease: l}}
	s.from(worker, h)
	s.wantUnneeded(spec.ID, 2)
}

// A parent that runs again needs what the one before it had let go: who promised it runs once more.
func TestAPromiseThatIsNeededAgain(t *testing.T) {
	s := newScript(t, Config{})
	spec, kids := promising(t, s, 1)
	id := kids[0].ID.Return(0)
	l := s.grant(worker)
	x := s.executed(worker)
	s.from(driver, &wire.Release{IDs: []ids.ObjectID{id}})
	s.wantUnneeded(spec.ID, 1)
	s.from(driver, &wire.Submit{Spec: spec}, &wire.Get{ID: id})
	s.done(worker, l, x, inline("over, without"))
	x = s.executed(worker)
	if x.Spec != spec || x.Attempt != 2 {
		t.Fatalf("pushed attempt %d of %v", x.Attempt, x.Spec.ID)
	}
	s.wantUnneeded(spec.ID)
	s.from(worker, &wire.Submit{Spec: kids[0]})
	s.done(worker, l, x, inline("over"))
	k := s.executed(worker)
	s.done(worker, l, k, inline("made"))
	if r := sent[*wire.Resolved](s, driver); len(r) != 1 || string(r[0].Result.Value.Data) != "made" {
		t.Fatalf("the get is answered with %+v", r)
	}
}

// Of a task that failed before the owner did, what it had promised has failed too.
func TestABrokenPromiseStaysBroken(t *testing.T) {
	s := newScript(t, Config{})
	spec, kids := promising(t, s, 1)
	id := kids[0].ID.Return(0)
	s.from(driver, &wire.Cancel{Task: spec.ID})
	s.rebuild(3)
	h := holds(3)
	h.Handles = []ids.ObjectID{spec.ID.Return(0), id}
	s.from(driver, h)
	s.from(worker, holds(3))
	s.from(worker2, holds(3))
	s.wantError(id, errs.CodeCancelled)
}

// Who has no result of a call is told of its end by what the call promised: not before, whoever runs it, and whatever was let go.
func TestTheEndOfACallThatHasNoResult(t *testing.T) {
	for name, caller := range map[string]ids.ClientID{"of another": driver, "of who runs it": worker} {
		t.Run(name, func(t *testing.T) {
			s := newScript(t, Config{})
			a, l := s.spawn(counter, worker)
			end := func(spec *wire.TaskSpec) ids.ObjectID {
				opts := *spec.Opts
				opts.NumReturns = 0
				spec.Opts, spec.Promises = &opts, []uint32{wire.EndOfCall}
				return ids.Derive(spec.ID, uint64(wire.EndOfCall)).Return(0)
			}
			first, second := s.callSpec(a, 1), s.callSpec(a, 2)
			id, dropped := end(first), end(second)
			s.from(caller, &wire.Submit{Spec: first}, &wire.Get{ID: id}, &wire.Release{IDs: []ids.ObjectID{id}}, &wire.Submit{Spec: second},
				&wire.Release{IDs: []ids.ObjectID{dropped}})
			xs := sent[*wire.Exec](s, worker)
			if len(xs) != 1 || len(xs[0].Tasks) != 2 {
				t.Fatalf("pushed %+v", xs)
			}
			if n := len(sent[*wire.Unneeded](s, worker)); n != 0 {
				t.Fatal("the worker is told that it need not make what it does not make")
			}
			s.from(caller, &wire.Submit{Spec: second}) // of an attempt that came again: it has not run twice for that
			s.done(worker, l, xs[0].Tasks[0])
			r := sent[*wire.Resolved](s, caller)
			if len(r) != 1 || r[0].ID != id {
				t.Fatalf("told %+v", r)
			}
			s.from(caller, &wire.Release{IDs: []ids.ObjectID{dropped}})
			s.done(worker, l, xs[0].Tasks[1])
			if s.c.tasks.n != 1 || len(s.c.placeholders)+len(s.c.promises.open) != 0 {
				t.Errorf("%d tasks, %d strays and %d promises stay", s.c.tasks.n-1, len(s.c.placeholders), len(s.c.promises.open))
			}
			s.from(caller, &wire.Get{ID: id}) // after the end
			if r := sent[*wire.Resolved](s, caller); len(r) != 1 {
				t.Errorf("told %+v", r)
			}
		})
	}
}

// What was referred to before it was promised is waited for from then on, and outlives who referred to it.
func TestAPromiseOfWhatWasUnknown(t *testing.T) {
	s := newScript(t, Config{})
	spec := s.spec(&wire.TaskOptions{Func: "call", NumReturns: 1, MaxPendingCalls: -1})
	a, _ := s.spawn(counter, worker)
	spec.Kind, spec.Actor, spec.Seq, spec.Promises = wire.TaskActorCall, ids.ActorID(a.ID), 1, []uint32{0}
	kid := s.spec(simple)
	kid.ID, kid.Parent = ids.Derive(spec.ID, 0), spec.ID
	id := kid.ID.Return(0)
	s.c.giveHandle(s.c.client(worker2), s.c.ensure(id)) // as its Holdings after a restart do
	s.from(driver, &wire.Submit{Spec: spec})
	s.from(worker2, &wire.Get{ID: id, Fetch: true})
	if m := sent[*wire.Resolved](s, worker2); len(m) != 0 {
		t.Fatalf("the get is answered with %+v before the promise is kept", m[0].Result)
	}
	s.from(worker2, &wire.Release{IDs: []ids.ObjectID{id}})
	s.from(worker, &wire.Submit{Spec: kid})
	s.done(worker2, s.grant(worker2), s.executed(worker2), inline("kept"))
	s.from(driver, &wire.AddRef{ID: id})
	if r := s.result(id); string(r.Result.Value.Data) != "kept" {
		t.Errorf("got %+v", r.Result)
	}
}
