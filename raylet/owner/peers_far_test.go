package owner

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/objectstore"
	"mobula/raylet/cluster"
	"mobula/wire"
)

// abroad is a job of another home, and abroadPut an object of it.
var (
	abroad    = ids.JobID(ids.Home(3).ID(2))
	abroadPut = ids.RootTask(abroad, 1).Put(1)
)

func (s *script) fromAbroad(m any) {
	s.t.Helper()
	if w, ok := m.(wire.Msg); ok {
		m = Words{w}
	}
	s.step(FromOwner{abroad, m.(PeerMsg)})
}

// saidTo gives what the step told the owner of a job, in words.
func (s *script) saidTo(job ids.JobID) (out []string) {
	for _, e := range s.out {
		if e.Kind != ToOwner || e.Job != job {
			continue
		}
		m := e.msg
		if w, ok := m.(Words); ok {
			m = w.Msg
		}
		if h, ok := m.(*wire.Holdings); ok {
			out = append(out, fmt.Sprintf("holds %d", len(h.Handles)))
			continue
		}
		_, name, _ := strings.Cut(fmt.Sprintf("%T", m), ".")
		out = append(out, name)
	}
	return out
}

func (s *script) wantSaidAbroad(want ...string) {
	s.t.Helper()
	if got := s.saidTo(abroad); !slices.Equal(got, want) {
		s.t.Fatalf("the other owner is told %q, want %q", got, want)
	}
}

// restoredAlone rebuilds the core after a restart of its node, which knows of no other job, and has its clients answer.
func (s *script) restoredAlone(handles ...ids.ObjectID) {
	s.t.Helper()
	s.rebuildWith(Restored{Epoch: 7})
	h := holds(7)
	h.Handles = handles
	s.from(driver, h)
	s.from(worker, holds(7))
	s.from(worker2, holds(7))
}

// A core that is rebuilt after a restart of its node frees nothing before those of other homes have told that had borrowed from it: its log names them.
func TestARebuiltCoreWaitsForBorrowersOfOtherHomes(t *testing.T) {
	s := newScript(t, Config{})
	first, second := s.root.Put(1), s.root.Put(2)
	for _, id := range []ids.ObjectID{first, second} {
		s.from(driver, &wire.PutValue{ID: id, Value: wire.Value{Data: []byte("v")}})
		s.fromAbroad(&wire.AddRef{ID: id})
	}
	s.from(driver, &wire.Release{IDs: []ids.ObjectID{first, second}})
	for range 2 { // and the core after that too
		s.rebuildWith(Restored{Epoch: 7})
		s.wantSaidAbroad("Resync")
		s.from(driver, holds(7))
		s.from(worker, holds(7))
		s.from(worker2, holds(7))
		s.wantSaidAbroad("holds 0")
		s.wantValue(first, "v")
		s.wantValue(second, "v")
	}
	s.fromAbroad(&wire.Holdings{Component: wire.ComponentOwner, Handles: []ids.ObjectID{second}})
	s.wantValue(second, "v")
	s.wantError(first, errs.CodeObjectFreed)
	s.fromAbroad(JobGone{})
	for s.c.sweeps.Len() > 0 {
		s.pass(0)
	}
	s.wantError(second, errs.CodeObjectFreed)
	for _, ck := range s.freed {
		delete(s.logs, ck)
	}
	s.rebuildWith(Restored{Epoch: 8})
	s.wantSaidAbroad()
	s.from(driver, holds(8))
	s.from(worker, holds(8))
	s.from(worker2, holds(8))
	s.wantEmpty()
}

// What it has of other homes' itself it tells, as its log knows it.
func TestARebuiltCoreTellsOwnersOfOtherHomes(t *testing.T) {
	s := newScript(t, Config{})
	box := s.root.Put(1)
	s.from(driver, &wire.PutValue{ID: box, Value: wire.Value{Refs: []ids.ObjectID{abroadPut}}})
	s.wantSaidAbroad("AddRef")
	s.restoredAlone(box)
	if got := s.saidTo(abroad); len(got) == 0 || got[len(got)-1] != "holds 1" {
		t.Fatalf("the other owner is told %q", got)
	}
	s.fromAbroad(&wire.Holdings{Component: wire.ComponentOwner})
	s.from(driver, &wire.Release{IDs: []ids.ObjectID{box}})
	s.wantSaidAbroad("Release")
	s.wantEmpty()
}

// Of a home that was started again each side says anew what it has, and waits for: what was on its way is lost. Nothing is freed meanwhile.
func TestAHomeThatWasStartedAgainIsToldAnew(t *testing.T) {
	s := newScript(t, Config{})
	mine, passed := s.root.Put(1), s.root.Put(2)
	for _, id := range []ids.ObjectID{mine, passed} {
		s.from(driver, &wire.PutValue{ID: id, Value: wire.Value{Data: []byte("v")}})
	}
	s.fromAbroad(&wire.AddRef{ID: mine})
	s.fromAbroad(Passing{Token: 7, Refs: []ids.ObjectID{passed}})
	s.from(driver, &wire.Release{IDs: []ids.ObjectID{mine, passed}}, &wire.AddRef{ID: abroadPut}, &wire.Get{ID: abroadPut, Fetch: true})
	s.fromAbroad(Rejoined{})
	s.wantSaidAbroad("Resync", "holds 1", "Get")
	s.wantValue(mine, "v")
	s.wantValue(passed, "v")
	s.fromAbroad(Passing{Token: 8, Refs: []ids.ObjectID{passed}}) // of its new life
	s.fromAbroad(&wire.Holdings{Component: wire.ComponentOwner})
	s.wantError(mine, errs.CodeObjectFreed)
	s.wantValue(passed, "v")
	s.fromAbroad(Arrived{Token: 8})
	s.wantError(passed, errs.CodeObjectFreed)

	s.fromAbroad(&wire.Resolved{ID: abroadPut, Result: wire.Result{Kind: wire.ResultStored, Size: 10}})
	s.wantSaidAbroad("Bring")
	s.fromAbroad(Rejoined{})
	s.wantSaidAbroad("Resync", "holds 1", "Bring")
	s.fromAbroad(Brought{ID: abroadPut})
	if p := told[objectstore.PinForGet](s); len(p) != 1 {
		t.Fatalf("the store is asked %+v", p)
	}
	s.from(driver, &wire.Get{ID: abroadPut, Fetch: true})
	s.wantSaidAbroad()
	s.fromAbroad(Rejoined{}) // its objects went with it from this node's store
	s.from(driver, &wire.Get{ID: abroadPut, Fetch: true})
	s.wantSaidAbroad("Bring")
	s.from(driver, &wire.Release{IDs: []ids.ObjectID{abroadPut}})
}

// The error of what a node took along that is dead names the node.
func TestTheErrorOfALostHomeNamesIt(t *testing.T) {
	s := newScript(t, Config{})
	s.from(driver, &wire.AddRef{ID: abroadPut}, &wire.Get{ID: abroadPut})
	s.fromAbroad(JobGone{Err: errs.New(errs.CodeWorkerCrashed, "node 3, its home, is dead")})
	r := sent[*wire.Resolved](s, driver)
	if len(r) != 1 || !errors.Is(r[0].Result.Err, errs.ErrOwnerDied) || !strings.Contains(r[0].Result.Err.Error(), "node 3, its home, is dead") {
		t.Fatalf("the driver gets %+v", r)
	}
	s.from(driver, &wire.Release{IDs: []ids.ObjectID{abroadPut}})
	s.wantEmpty()
}

// Two nodes count what they pass on by themselves: the token of one job ends nothing of another.
func TestATokenIsOfOneJob(t *testing.T) {
	s := newScript(t, Config{})
	mine := s.root.Put(1)
	s.from(driver, &wire.PutValue{ID: mine, Value: wire.Value{Data: []byte("v")}})
	s.fromFar(Passing{Token: 7, Refs: []ids.ObjectID{mine}})
	s.fromAbroad(Passing{Token: 7, Refs: []ids.ObjectID{mine}})
	s.from(driver, &wire.Release{IDs: []ids.ObjectID{mine}})
	s.fromAbroad(Arrived{Token: 7})
	s.wantValue(mine, "v")
	s.fromFar(Arrived{Token: 7})
	s.wantError(mine, errs.CodeObjectFreed)
	s.wantEmpty()
}

// An owner of another home that does not answer a Bring is asked again: it gives up what was asked of it when it hears that the node's life is over, which this
// one may have heard before it asked.
func TestAnObjectOfAnotherHomeIsAskedForAgain(t *testing.T) {
	s := newScript(t, Config{})
	s.from(driver, &wire.AddRef{ID: abroadPut}, &wire.Get{ID: abroadPut, Fetch: true})
	s.fromAbroad(&wire.Resolved{ID: abroadPut, Result: wire.Result{Kind: wire.ResultStored, Size: 10}})
	s.wantSaidAbroad("Bring")
	for range 2 {
		s.pass(bringPatience)
		s.wantSaidAbroad("Bring")
	}
	s.fromAbroad(Brought{ID: abroadPut})
	if p := told[objectstore.PinForGet](s); len(p) != 1 {
		t.Fatalf("the store is asked %+v", p)
	}
	s.pass(bringPatience)
	s.wantSaidAbroad()
	s.from(driver, &wire.Release{IDs: []ids.ObjectID{abroadPut}})

	mine := s.root.Put(1) // the other side
	s.from(driver, &wire.Seal{ID: mine, Size: 10})
	s.fromAbroad(&wire.AddRef{ID: mine})
	for range 2 {
		s.fromAbroad(Bring{ID: mine, Node: 3})
		if s.wantSaidAbroad(); len(told[cluster.Holds](s)) == 0 {
			t.Fatal("nobody is asked to open the job there")
		}
	}
	s.step(JobOpened{Node: 3})
	s.wantSaidAbroad("Brought")
}

// A node that whoever chooses nodes does not know yet is not taken for told: what this job makes there later is told then, and where nothing is to be there any more
// that is told too.
func TestANodeThatIsNotOpenIsNotTakenForTold(t *testing.T) {
	s := newScript(t, Config{})
	mine := s.root.Put(1)
	s.from(driver, &wire.Seal{ID: mine, Size: 10})
	s.fromAbroad(&wire.AddRef{ID: mine})
	s.fromAbroad(Bring{ID: mine, Node: 3})
	if s.c.copies.told[3] {
		t.Error("the node counts as told before anybody has answered")
	}
	s.fromAbroad(&wire.Release{IDs: []ids.ObjectID{mine}})
	s.from(driver, &wire.Release{IDs: []ids.ObjectID{mine}})
	s.step(JobOpened{Node: 3})
	if h := told[cluster.Holds](s); len(h) != 1 || h[0].Objects {
		t.Errorf("who chooses nodes is told %+v, and nothing is there", h)
	}
	s.wantSaidAbroad("Brought") // it is gone
	s.wantEmpty()
}
