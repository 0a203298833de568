package owner

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/objectstore"
	"mobula/raylet/owner/task"
	"mobula/wire"
)

const far ids.JobID = 2

// farPut is an object of another job.
var farPut = ids.RootTask(far, 1).Put(1)

// said gives what the step told the owner of the other job, in words.
func (s *script) said() (out []string) {
	for _, e := range s.out {
		if e.Kind != ToOwner {
			continue
		}
		if e.Job != far {
			s.t.Errorf("job %v is told %+v", e.Job, e.msg)
		}
		m := e.msg
		if w, ok := m.(Words); ok {
			m = w.Msg
		}
		switch m := m.(type) {
		case *wire.Holdings:
			out = append(out, fmt.Sprintf("holds %d", len(m.Handles)))
		case *wire.Resolved:
			out = append(out, fmt.Sprintf("resolved %s", m.Result.Value.Data))
		default:
			_, name, _ := strings.Cut(fmt.Sprintf("%T", m), ".")
			out = append(out, name)
		}
	}
	return out
}

func (s *script) wantSaid(want ...string) {
	s.t.Helper()
	if got := s.said(); !slices.Equal(got, want) {
		s.t.Fatalf("the other owner is told %q, want %q", got, want)
	}
}

func (s *script) fromFar(m any) {
	s.t.Helper()
	if w, ok := m.(wire.Msg); ok {
		m = Words{w}
	}
	s.step(FromOwner{far, m.(PeerMsg)})
}

func farInline(v string) *wire.Resolved {
	return &wire.Resolved{ID: farPut, Result: wire.Result{Kind: wire.ResultInline, Value: wire.Value{Data: []byte(v)}, Size: uint64(len(v))}}
}

// An object of another job is borrowed once, whoever here refers to it, asked for when somebody waits, and given back with the last reference.
func TestAnotherJobsObjectIsBorrowed(t *testing.T) {
	s := newScript(t, Config{})
	box := s.root.Put(1)
	s.from(driver, &wire.PutValue{ID: box, Value: wire.Value{Refs: []ids.ObjectID{farPut}}})
	s.wantSaid("AddRef")
	s.from(driver, &wire.AddRef{ID: farPut})
	s.wantSaid()
	s.from(driver, &wire.Get{ID: farPut, Fetch: true})
	s.wantSaid("Get")
	spec := s.submit(simple, wire.Arg{Ref: farPut})
	if s.wantSaid(); s.state(spec) != task.PendingArgs {
		t.Fatalf("it is %v before its argument is there", s.state(spec))
	}
	s.fromFar(farInline("v"))
	if r := sent[*wire.Resolved](s, driver); len(r) != 1 || string(r[0].Result.Value.Data) != "v" {
		t.Fatalf("the driver gets %+v", r)
	}
	l := s.grant(worker)
	x := s.executed(worker)
	if len(x.Args) != 1 || string(x.Args[0].Result.Value.Data) != "v" {
		t.Fatalf("the task gets %+v", x.Args)
	}
	s.done(worker, l, x, inline(""))
	s.from(driver, &wire.Release{IDs: []ids.ObjectID{box, spec.ID.Return(0)}})
	s.wantSaid()
	s.from(driver, &wire.Release{IDs: []ids.ObjectID{farPut}})
	s.wantSaid("Release")
	s.wantEmpty()
	for _, e := range s.out {
		if e.Kind == ToStore {
			t.Errorf("the store is told %+v", e.msg)
		}
	}
}

// Of one in the store that is lost there, its own owner is told before it is asked again.
func TestAnotherJobsObjectIsLost(t *testing.T) {
	s := newScript(t, Config{})
	stored := &wire.Resolved{ID: farPut, Result: wire.Result{Kind: wire.ResultStored, Size: 10}}
	s.from(driver, &wire.AddRef{ID: farPut}, &wire.Get{ID: farPut, Fetch: true})
	s.fromFar(stored)
	s.wantSaid("Bring")
	s.fromFar(Brought{ID: farPut})
	if p := told[objectstore.PinForGet](s); len(p) != 1 || p[0].Job != 1 {
		t.Fatalf("the store is asked %+v", p)
	}
	s.step(FromStore{Msg: objectstore.Lost{ID: farPut, Client: driver, Copy: 3, Err: errs.New(errs.CodeObjectLost, "gone")}})
	s.wantSaid("BorrowLost", "Get")
	if l := told[BorrowLost](s); l[0].Lost.Copy != 3 || l[0].Lost.ID != farPut {
		t.Errorf("it is told of %+v", l)
	}
	s.fromFar(&wire.Resolved{ID: farPut, Result: *errorResult(errs.New(errs.CodeObjectLost, "gone"))})
	if r := sent[*wire.Resolved](s, driver); len(r) != 1 || r[0].Result.Err.Code != errs.CodeObjectLost {
		t.Fatalf("the driver gets %+v", r)
	}
	s.from(driver, &wire.Release{IDs: []ids.ObjectID{farPut}})
	s.wantEmpty()
}

// A job that ends takes its objects along, and what it had of others'.
func TestAnotherJobEnds(t *testing.T) {
	s := newScript(t, Config{})
	mine := s.root.Put(1)
	s.from(driver, &wire.PutValue{ID: mine, Value: wire.Value{Data: []byte("v")}}, &wire.AddRef{ID: farPut}, &wire.Get{ID: farPut})
	s.fromFar(&wire.AddRef{ID: mine})
	s.fromFar(Passing{Token: 7, Refs: []ids.ObjectID{mine}})
	s.from(driver, &wire.Release{IDs: []ids.ObjectID{mine}})
	s.wantValue(mine, "v")
	s.fromFar(JobGone{})
	if r := sent[*wire.Resolved](s, driver); len(r) != 1 || r[0].Result.Err.Code != errs.CodeOwnerDied {
		t.Fatalf("the driver gets %+v", r)
	}
	for s.c.sweeps.Len() > 0 {
		s.pass(0)
	}
	s.wantError(mine, errs.CodeObjectFreed)
	s.from(driver, &wire.Release{IDs: []ids.ObjectID{farPut}})
	s.wantEmpty()
}

// An object lives while another job's owner has it, which is answered as a client is.
func TestAnotherOwnerHoldsAnObject(t *testing.T) {
	s := newScript(t, Config{})
	mine := s.root.Put(1)
	s.from(driver, &wire.PutValue{ID: mine, Value: wire.Value{Data: []byte("v")}})
	s.fromFar(&wire.AddRef{ID: mine})
	s.from(driver, &wire.Release{IDs: []ids.ObjectID{mine}})
	s.fromFar(&wire.Get{ID: mine})
	s.wantSaid("resolved v")
	s.fromFar(&wire.Release{IDs: []ids.ObjectID{mine}})
	s.wantError(mine, errs.CodeObjectFreed)
	s.wantEmpty()
}

// A reference that is on its way is held until who gets it has it, though that one gave it back just before.
func TestAReferenceOnItsWayIsHeld(t *testing.T) {
	s := newScript(t, Config{})
	mine := s.root.Put(1)
	s.from(driver, &wire.PutValue{ID: mine, Value: wire.Value{Data: []byte("v")}})
	s.fromFar(&wire.AddRef{ID: mine})
	s.fromFar(Passing{Token: 7, Refs: []ids.ObjectID{mine}})
	s.from(driver, &wire.Release{IDs: []ids.ObjectID{mine}})
	s.fromFar(&wire.Release{IDs: []ids.ObjectID{mine}}) // said before it got the reference
	s.wantValue(mine, "v")
	s.fromFar(&wire.AddRef{ID: mine})
	s.fromFar(Arrived{Token: 7})
	s.wantValue(mine, "v")
	s.fromFar(&wire.Release{IDs: []ids.ObjectID{mine}})
	s.wantEmpty()

	s.fromFar(Reached{Token: 9})
	if e := s.out[0]; e.Kind != ToOwner || e.Job != far || e.msg != any(Arrived{Token: 9}) {
		t.Errorf("it answers %+v", e)
	}
}

// restored rebuilds the core, with the other job there, and has its clients answer: the driver holds these.
func (s *script) restored(handles ...ids.ObjectID) {
	s.t.Helper()
	s.rebuildWith(Restored{Epoch: 7, Jobs: []ids.JobID{far}})
	h := holds(7)
	h.Handles = handles
	s.from(driver, h)
	s.from(worker, holds(7))
	s.from(worker2, holds(7))
}

// A rebuilt core frees nothing before the others have said what they have.
func TestARebuiltCoreWaitsForOtherOwners(t *testing.T) {
	s := newScript(t, Config{})
	first, second := s.root.Put(1), s.root.Put(2)
	for _, id := range []ids.ObjectID{first, second} {
		s.from(driver, &wire.PutValue{ID: id, Value: wire.Value{Data: []byte("v")}})
		s.fromFar(&wire.AddRef{ID: id})
	}
	s.from(driver, &wire.Release{IDs: []ids.ObjectID{first, second}})
	s.restored()
	s.wantValue(first, "v")
	s.wantValue(second, "v")
	s.fromFar(&wire.Holdings{Component: wire.ComponentOwner, Handles: []ids.ObjectID{second}})
	s.wantValue(second, "v")
	s.wantError(first, errs.CodeObjectFreed)
	s.fromFar(&wire.Holdings{Component: wire.ComponentOwner})
	s.wantEmpty()
}

// It does not wait for one that is gone.
func TestARebuiltCoreDoesNotWaitForAJobThatEnded(t *testing.T) {
	s := newScript(t, Config{})
	mine := s.root.Put(1)
	s.from(driver, &wire.PutValue{ID: mine})
	s.from(driver, &wire.Get{ID: mine})
	s.restored()
	s.fromFar(JobGone{})
	s.wantEmpty()
}

// A rebuilt core knows what it has of others from its log and its clients, and tells them; what is waited for it asks again.
func TestARebuiltCoreTellsOtherOwners(t *testing.T) {
	s := newScript(t, Config{})
	box := s.root.Put(1)
	second := ids.RootTask(far, 1).Put(2)
	s.from(driver, &wire.PutValue{ID: box, Value: wire.Value{Refs: []ids.ObjectID{farPut}}}, &wire.AddRef{ID: second}, &wire.Get{ID: second})
	s.rebuildWith(Restored{Epoch: 7, Jobs: []ids.JobID{far}})
	if s.said()[0] != "Resync" {
		t.Fatalf("the other owner is told %q", s.said())
	}
	h := holds(7)
	h.Handles, h.Gets = []ids.ObjectID{box, second}, []wire.Get{{ID: second}}
	s.from(driver, h)
	s.from(worker, holds(7))
	s.from(worker2, holds(7))
	if got := s.said(); !slices.Equal(got[len(got)-2:], []string{"holds 2", "Get"}) {
		t.Fatalf("the other owner is told %q", got)
	}
	s.fromFar(&wire.Resync{Component: wire.ComponentOwner, Epoch: 3})
	s.wantSaid("holds 2", "Get")
	s.fromFar(&wire.Holdings{Component: wire.ComponentOwner})
	s.from(driver, &wire.Release{IDs: []ids.ObjectID{box}})
	s.wantSaid("Release")
}

// What a worker of a detached actor submits goes on without the driver, though it does so in a call that another job has made.
func TestATaskOfACallFromAnotherJobOutlivesTheDriver(t *testing.T) {
	s := newScript(t, Config{})
	s.detachedActor()
	kid := s.spec(simple)
	kid.Parent = ids.Derive(ids.RootTask(far, 1), 1).In(1)
	s.from(worker2, &wire.Submit{Spec: kid})
	s.step(ClientGone{Client: driver})
	if s.state(kid) != task.PendingNode {
		t.Errorf("it is %v", s.state(kid))
	}
}

// A cancel of another job's task goes to its owner.
func TestACancelOfAnotherJobsTask(t *testing.T) {
	s := newScript(t, Config{})
	s.from(driver, &wire.Cancel{Task: farPut.Task})
	s.wantSaid("Cancel")
}

// nobodys is a message of each kind of sender that no owner takes.
type nobodys struct{}

func (nobodys) Kind() wire.Kind { return 0 }
func (nobodys) peerMsg()        {}
func (nobodys) directoryNews()  {}
func (nobodys) ownerEvent()     {}

// What an owner does not know is a fault that supervision reports, whoever says it. It is not passed over.
func TestUnknownMessagesAreFaults(t *testing.T) {
	for _, ev := range []Event{
		nobodys{}, FromClient{driver, []wire.Msg{nobodys{}}}, FromClient{driver, []wire.Msg{&wire.Exec{}}}, FromStore{}, FromSched{}, FromDirectory{}, FromDirectory{nobodys{}},
		FromOwner{Job: far}, FromOwner{far, nobodys{}}, FromOwner{far, Words{}}, FromOwner{far, Words{&wire.Submit{}}},
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%T %+v is passed over", ev, ev)
				}
			}()
			newScript(t, Config{}).step(ev)
		}()
	}
}
