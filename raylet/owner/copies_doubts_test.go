package owner

import (
	"slices"
	"testing"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/objectstore"
	"mobula/raylet/owner/object"
	"mobula/raylet/owner/task"
	"mobula/wire"
)

var splits = &wire.TaskOptions{Func: "split", NumReturns: 3, MaxRetries: 1}

// makeSplit runs a task with three results in the store of a worker's node.
func (s *script) makeSplit(w ids.ClientID, args ...wire.Arg) *wire.TaskSpec {
	s.t.Helper()
	spec := s.submit(splits, args...)
	l := s.grant(w)
	if len(args) > 0 {
		s.pinned(spec)
	}
	s.sealSplit(w, l, spec)
	return spec
}

func (s *script) sealSplit(w ids.ClientID, l ids.LeaseID, spec *wire.TaskSpec) {
	s.t.Helper()
	x := s.executed(w)
	for i := range 3 {
		s.from(w, &wire.Seal{ID: spec.ID.Return(i), Attempt: x.Attempt, Size: big})
	}
	stored := wire.Result{Kind: wire.ResultStored, Size: big}
	s.done(w, l, x, stored, stored, stored)
}

// comeBack rebuilds the core, whose clients hold nothing but what the driver does.
func (s *script) comeBack(ev Restored, held ...ids.ObjectID) {
	s.t.Helper()
	s.rebuildWith(ev)
	h := holds(ev.Epoch)
	h.Handles = held
	s.from(worker, holds(ev.Epoch))
	s.from(worker2, holds(ev.Epoch))
	s.from(driver, h)
}

func inventory(ask uint64, objects ...objectstore.SealedInfo) FromStore {
	return FromStore{Msg: objectstore.Inventory{Job: 1, Asked: true, Ask: ask, Objects: objects}}
}

// The job's node is started again, and its store was not kept. All that lay there is lost at once: each task runs once more for all of its results, and for those
// that it is made of, and a put is an error.
func TestWhatWasInAStoreThatIsNotKeptIsMadeAgainTogether(t *testing.T) {
	s := newScript(t, Config{})
	first := s.makeStored(simple)
	split := s.makeSplit(worker, wire.Arg{Ref: first.ID.Return(0)})
	s.from(driver, &wire.Release{IDs: []ids.ObjectID{first.ID.Return(0)}})
	put := s.root.Put(1)
	s.from(driver, &wire.Seal{ID: put, Size: 8})

	s.comeBack(Restored{Epoch: 3}, split.ID.Return(0), split.ID.Return(1), split.ID.Return(2), put)
	if l := told[objectstore.ListObjects](s); len(l) != 1 || l[0].Ask != 3 {
		t.Fatalf("the store is asked %+v", l)
	}
	s.step(FromStore{Msg: objectstore.Inventory{Job: 1, Asked: true, Left: []objectstore.Left{{ID: put, Attempt: 9, Client: worker}}}}) // the news of a client that is gone
	s.step(inventory(2))                                                                                                                // which an earlier core had asked for
	if s.state(split) != task.Finished {
		t.Fatalf("before the store has answered the task is %v", s.state(split))
	}
	s.step(inventory(3))
	if s.state(first) != task.PendingNode || s.state(split) != task.PendingArgs {
		t.Fatalf("the tasks of what was lost are %v and %v", s.state(first), s.state(split))
	}
	s.wantError(put, errs.CodeObjectLost)

	l := s.grant(worker)
	x := s.executed(worker)
	s.from(worker, &wire.Seal{ID: first.ID.Return(0), Attempt: x.Attempt, Size: 8})
	s.done(worker, l, x, stored())
	l = s.grant(worker)
	s.pinned(split)
	s.sealSplit(worker, l, split)
	for i := range 3 {
		if o := s.c.object(split.ID.Return(i)); o.state != object.Stored {
			t.Errorf("result %d is %v", i, o.state)
		}
	}
	if s.c.stats.Reconstructed != 2 {
		t.Errorf("%d tasks ran again", s.c.stats.Reconstructed)
	}
}

// What the store has is not lost: nor is what it has of another node, what was being sealed, or what another node has a copy of.
func TestWhatTheStoreHasStays(t *testing.T) {
	s := newScript(t, Config{})
	split := s.makeSplit(worker)
	there := s.elsewhere(5, 1)
	put, writing, written := s.root.Put(1), s.root.Put(2), s.root.Put(3)
	for _, id := range []ids.ObjectID{put, writing, written} {
		s.from(driver, &wire.Seal{ID: id, Size: 8})
	}
	results := []ids.ObjectID{split.ID.Return(0), split.ID.Return(1), split.ID.Return(2)}
	s.comeBack(Restored{Epoch: 3, Nodes: []ids.Home{there.Home()}}, append(results, put, writing, written)...)
	at := s.c.object(results[0]).attempt
	s.step(FromStore{Node: there.Home(), Msg: objectstore.Inventory{Job: 1, Asked: true, Ask: 3, Objects: []objectstore.SealedInfo{{ID: put, Size: 8}}}})
	inv := inventory(3, objectstore.SealedInfo{ID: results[0], Attempt: at, Size: big}, objectstore.SealedInfo{ID: results[1], Attempt: at, Size: big, Elsewhere: true})
	m := inv.Msg.(objectstore.Inventory)
	m.Unsealed = []objectstore.Left{{ID: results[2], Attempt: at, Client: worker}, {ID: writing, Client: driver}, {ID: s.root.Put(4), Client: driver}}
	m.Left = []objectstore.Left{{ID: written, Client: 9}}
	s.step(FromStore{Msg: m})
	var sealed []ids.ObjectID
	for _, m := range told[objectstore.SealObject](s) {
		sealed = append(sealed, m.ID)
	}
	if want := []ids.ObjectID{written, results[2], writing}; !slices.Equal(sealed, want) {
		t.Errorf("sealed are %v, want %v", sealed, want)
	}
	if d := told[objectstore.DropAttempt](s); len(d) > 0 {
		t.Errorf("dropped are %+v", d)
	}
	if s.state(split) != task.Finished || s.c.stats.Lost != 0 {
		t.Errorf("the task is %v, and %d objects are lost", s.state(split), s.c.stats.Lost)
	}
	if o := s.c.object(put); o.state != object.Stored || s.c.copies.of(o)[0] != there.Home() {
		t.Errorf("what another node has a copy of is %v, on %v", o.state, s.c.copies.of(o))
	}
}

// What nobody is known to hold is not made again: the owner of another job may have let go of it too. If it has not, it gets it.
func TestWhatNobodyIsKnownToHoldWaits(t *testing.T) {
	const other = ids.JobID(2)
	s := newScript(t, Config{})
	split := s.makeSplit(worker)
	s.comeBack(Restored{Epoch: 3, Jobs: []ids.JobID{other}}, split.ID.Return(0))
	s.from(driver, &wire.Release{IDs: []ids.ObjectID{split.ID.Return(0)}})
	s.step(inventory(3))
	if s.state(split) != task.Finished {
		t.Fatalf("nobody holds its results, and the task is %v", s.state(split))
	}
	s.step(FromOwner{other, Words{&wire.Holdings{Component: wire.ComponentOwner, Handles: []ids.ObjectID{split.ID.Return(1)}}}})
	s.step(FromOwner{other, Words{&wire.Get{ID: split.ID.Return(1)}}})
	if s.state(split) != task.PendingNode || s.c.stats.Reconstructed != 1 {
		t.Errorf("the owner of another job waits for a result, and the task is %v", s.state(split))
	}
	if o := s.c.object(split.ID.Return(2)); o.state != object.Freed {
		t.Errorf("what nobody holds is %v", o.state)
	}
}
