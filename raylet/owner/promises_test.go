package owner

import (
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
	if n := len(s.c.strays); n != 0 {
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
	if len(s.c.strays) != 0 || s.c.tasks.n != 0 {
		t.Errorf("%d strays and %d tasks stay", len(s.c.strays), s.c.tasks.n)
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
	if n := len(s.c.strays); n != 1 {
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
