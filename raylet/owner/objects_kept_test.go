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

// farNode is another node than the job's own.
const farNode ids.Home = 5

// put has the driver put the n-th object into the store.
func (s *script) put(n uint32, size uint64) ids.ObjectID {
	id := s.root.Put(n)
	s.from(driver, &wire.Seal{ID: id, Size: size})
	return id
}

// madeFrom has a worker of another node make a stored object of one, and gives that up then.
func (s *script) madeFrom(far ids.ClientID, arg ids.ObjectID) *wire.TaskSpec {
	s.t.Helper()
	spec := s.submit(simple, wire.Arg{Ref: arg})
	l := s.grant(far)
	s.pinned(spec)
	x := s.executed(far)
	s.from(far, &wire.Seal{ID: spec.ID.Return(0), Attempt: x.Attempt, Size: 8},
		&wire.Done{Task: spec.ID, Attempt: x.Attempt, Lease: l, Results: []wire.Result{stored()}, Times: wire.Times{Started: 1, Ended: 9e6}})
	s.step(FromSched{sched.Reclaim{Lease: l}})
	s.from(driver, &wire.Release{IDs: []ids.ObjectID{arg}})
	return spec
}

// freedAt gives the nodes whose stores freed an object in the last step.
func (s *script) freedAt(id ids.ObjectID) (nodes []ids.Home) {
	for _, e := range s.out {
		if f, ok := e.msg.(objectstore.Free); ok && slices.Contains(f.IDs, id) {
			nodes = append(nodes, e.Node)
		}
	}
	return nodes
}

// What a node made of a put is made again when the node is lost, though nobody refers to the put any more: one store has kept it. It is freed with the result.
func TestAPutThatLineageNeedsIsKept(t *testing.T) {
	s := newScript(t, Config{})
	far := s.elsewhere(farNode, 1)
	put := s.put(1, 1<<18)
	spec := s.madeFrom(far, put)
	if got := s.freedAt(put); !slices.Equal(got, []ids.Home{farNode}) {
		t.Fatalf("it is freed on the nodes %v, want its copy alone", got)
	}
	s.step(NodeGone{Node: farNode, Err: errs.New(errs.CodeWorkerCrashed, "gone")})
	l := s.grant(worker)
	s.pinned(spec)
	again := s.executed(worker)
	if again.Spec.ID != spec.ID {
		t.Fatalf("%v runs", again.Spec.ID)
	}
	s.from(worker, &wire.Seal{ID: spec.ID.Return(0), Attempt: again.Attempt, Size: 8})
	s.done(worker, l, again, stored())
	s.from(driver, &wire.Release{IDs: []ids.ObjectID{spec.ID.Return(0)}})
	if got := s.freedAt(put); !slices.Equal(got, []ids.Home{0}) {
		t.Errorf("it is freed on the nodes %v", got)
	}
	s.wantEmpty()
}

// So is the result of a task that may not run again.
func TestAResultThatIsNotMadeAgainIsKeptForLineage(t *testing.T) {
	s := newScript(t, Config{})
	far := s.elsewhere(farNode, 1)
	once := s.makeStored(&wire.TaskOptions{Func: "once", NumReturns: 1}).ID.Return(0)
	many := s.makeStored(simple).ID.Return(0)
	for id, kept := range map[ids.ObjectID]bool{once: true, many: false} {
		spec := s.madeFrom(far, id)
		if got := s.freedAt(id); slices.Contains(got, 0) == kept {
			t.Errorf("object %v is freed on the nodes %v; it is to be kept: %v", id, got, kept)
		}
		s.from(driver, &wire.Release{IDs: []ids.ObjectID{spec.ID.Return(0)}})
		if got := s.freedAt(id); slices.Contains(got, 0) != kept {
			t.Errorf("object %v is freed on the nodes %v with what was made of it", id, got)
		}
	}
	s.wantEmpty()
}

// So it is after a restart.
func TestAPutThatLineageNeedsIsKeptOverARestart(t *testing.T) {
	s := newScript(t, Config{})
	far := s.elsewhere(farNode, 1)
	put := s.put(1, 1<<18)
	spec := s.madeFrom(far, put)
	s.rebuildWith(Restored{Epoch: 7, Nodes: []ids.Home{farNode}})
	h := holds(7)
	h.Handles = []ids.ObjectID{spec.ID.Return(0)}
	s.from(driver, h)
	for _, w := range []ids.ClientID{worker, worker2, far} {
		s.from(w, holds(7))
	}
	if got := s.freedAt(put); slices.Contains(got, 0) {
		t.Fatalf("it is freed on the nodes %v", got)
	}
	s.step(NodeGone{Node: farNode, Err: errs.New(errs.CodeWorkerCrashed, "gone")})
	if st := s.state(spec); st == task.Finished {
		t.Errorf("it is %v", st)
	}
}

// When a store has no room on disk either, all of it is freed.
func TestAFullDiskHasWhatIsKeptForLineageFreed(t *testing.T) {
	s := newScript(t, Config{})
	far := s.elsewhere(farNode, 1)
	first, second := s.put(1, 1<<18), s.put(2, 1<<18)
	s.madeFrom(far, first)
	s.madeFrom(far, second)
	s.step(FromStore{Node: farNode, Msg: objectstore.CreateWaits{}})
	for _, put := range []ids.ObjectID{first, second} {
		if got := s.freedAt(put); !slices.Contains(got, 0) {
			t.Errorf("object %v is freed on the nodes %v", put, got)
		}
	}
}

// There is a bound for what is kept so: the oldest is freed for others. What is larger than that is not kept.
func TestWhatIsKeptForLineageIsBounded(t *testing.T) {
	s := newScript(t, Config{MaxKeptBytes: 3 << 18})
	far := s.elsewhere(farNode, 1)
	large := s.put(1, 4<<18)
	s.madeFrom(far, large)
	if got := s.freedAt(large); len(got) != 2 {
		t.Errorf("the largest is freed on the nodes %v, want both", got)
	}
	first, second, third := s.put(2, 1<<18), s.put(3, 1<<18), s.put(4, 2<<18)
	s.madeFrom(far, first)
	of := s.madeFrom(far, second)
	s.from(driver, &wire.Release{IDs: []ids.ObjectID{of.ID.Return(0)}}) // it is kept no more: there is room for the third beside the first
	s.madeFrom(far, third)
	if got := s.freedAt(first); len(got) != 0 {
		t.Errorf("the first is freed on the nodes %v", got)
	}
	s.madeFrom(far, s.put(5, 1))
	if got := s.freedAt(first); !slices.Equal(got, []ids.Home{0}) {
		t.Errorf("beyond the bound the first is freed on the nodes %v", got)
	}
	if n := s.c.keptValues.bytes; n != 2<<18+1 {
		t.Errorf("%d bytes are kept", n)
	}
}

// What was freed while the job's objects were on one node is not there to make anything of it again. What was made of it and is used on another node is
// kept in its place, however far back that is.
func TestWhatCannotBeMadeAgainForWantOfAPutIsKept(t *testing.T) {
	for _, steps := range []int{1, 2, 5} {
		for _, putFirst := range []bool{true, false} {
			s := newScript(t, Config{})
			put := s.put(1, 1<<18)
			chain := []ids.ObjectID{put}
			l := ids.LeaseID(0)
			for range steps {
				spec := s.submit(simple, wire.Arg{Ref: chain[len(chain)-1]})
				if l == 0 {
					l = s.grant(worker)
				}
				s.pinned(spec)
				x := s.executed(worker)
				s.from(worker, &wire.Seal{ID: spec.ID.Return(0), Attempt: x.Attempt, Size: 8},
					&wire.Done{Task: spec.ID, Attempt: x.Attempt, Lease: l, Results: []wire.Result{stored()}, Times: wire.Times{Started: 1, Ended: 9e6}})
				chain = append(chain, spec.ID.Return(0))
			}
			s.step(FromSched{sched.Reclaim{Lease: l}})
			gone, last := slices.Clone(chain[:steps]), chain[steps]
			if !putFirst {
				slices.Reverse(gone)
			}
			for _, id := range gone {
				s.from(driver, &wire.Release{IDs: []ids.ObjectID{id}})
				if got := s.freedAt(id); !slices.Equal(got, []ids.Home{0}) {
					t.Fatalf("object %v, on the one node that there is, is freed on the nodes %v", id, got)
				}
			}
			spec := s.madeFrom(s.elsewhere(farNode, 1), last)
			if got := s.freedAt(last); slices.Contains(got, 0) {
				t.Fatalf("%d steps from the put, what was made is freed on the nodes %v", steps, got)
			}
			s.step(NodeGone{Node: farNode, Err: errs.New(errs.CodeWorkerCrashed, "gone")})
			if st := s.state(spec); st != task.PendingNode {
				t.Errorf("%d steps from the put, the task of what is lost is %v", steps, st)
			}
			s.from(driver, &wire.Cancel{Task: spec.ID}, &wire.Release{IDs: []ids.ObjectID{spec.ID.Return(0)}})
			s.wantEmpty()
		}
	}
}

// A long chain of results that can be made again is not walked for each of its links.
func TestALongLineageIsLookedAtOnce(t *testing.T) {
	s := newScript(t, Config{})
	far := s.elsewhere(farNode, 1)
	keeper := s.madeFrom(far, s.put(1, 8)) // while this is there, so is an object on another node
	last := s.madeFrom(far, s.put(2, 8)).ID.Return(0)
	for range 50 {
		last = s.madeFrom(far, last).ID.Return(0)
	}
	if n := len(s.c.keptValues.size); n != 2 {
		t.Errorf("%d values are kept, of two puts and what is made again of them", n)
	}
	losses := s.c.keptValues.losses
	o := s.c.object(last).rec
	for range 40 {
		arg := s.c.object(o.spec.Args[0].Ref)
		if arg.remakes != losses+1 {
			t.Fatalf("object %v was freed without a mark that it is made again", arg.id)
		}
		o = arg.rec
	}
	if s.state(keeper) != task.Finished {
		t.Errorf("it is %v", s.state(keeper))
	}
}

// Of several copies the one stays that outlives any other node: that of the job's own node. Where it has none, the others stay.
func TestWhatIsKeptForLineageOutlivesANode(t *testing.T) {
	for _, at := range []ids.Home{0, third} {
		s := newScript(t, Config{})
		far := s.elsewhere(farNode, 1)
		once := s.submit(&wire.TaskOptions{Func: "once", NumReturns: 1}) // it may not run again
		l := s.grant(far)
		x := s.executed(far)
		s.from(far, &wire.Seal{ID: once.ID.Return(0), Attempt: x.Attempt, Size: 8},
			&wire.Done{Task: once.ID, Attempt: x.Attempt, Lease: l, Results: []wire.Result{stored()}, Times: wire.Times{Started: 1, Ended: 9e6}})
		s.step(FromSched{sched.Reclaim{Lease: l}})
		arg := once.ID.Return(0)
		if at == third { // where somebody reads it
			s.from(s.elsewhere(third, 1), &wire.AddRef{ID: arg}, &wire.Get{ID: arg, Fetch: true}, &wire.Release{IDs: []ids.ObjectID{arg}})
		} else {
			s.from(driver, &wire.Get{ID: arg, Fetch: true})
		}
		s.step(FromStore{Node: at, Msg: objectstore.Imported{ID: arg, Attempt: x.Attempt}})
		spec := s.madeFrom(far, arg)
		if got := s.freedAt(arg); slices.Contains(got, at) {
			t.Fatalf("its copy is freed on the nodes %v", got)
		}
		s.step(NodeGone{Node: farNode, Err: errs.New(errs.CodeWorkerCrashed, "gone")})
		if st := s.state(spec); st != task.PendingNode {
			t.Errorf("with a copy on node %v, the task of what was made of it is %v", at, st)
		}
	}
}

// The result of a task that has no retry left is kept as one of a task that may not run again.
func TestAResultWithoutARetryLeftIsKeptForLineage(t *testing.T) {
	s := newScript(t, Config{})
	far := s.elsewhere(farNode, 1)
	spec := s.makeStored(&wire.TaskOptions{Func: "twice", NumReturns: 1, MaxRetries: 1})
	id := spec.ID.Return(0)
	s.step(FromStore{Msg: objectstore.Lost{ID: id}})
	s.from(driver, &wire.Get{ID: id}) // it is made again
	l := s.grant(worker)
	x := s.executed(worker)
	s.from(worker, &wire.Seal{ID: id, Attempt: x.Attempt, Size: 8})
	s.done(worker, l, x, stored())
	s.step(FromSched{sched.Reclaim{Lease: l}})
	of := s.madeFrom(far, id)
	if got := s.freedAt(id); slices.Contains(got, 0) {
		t.Errorf("it is freed on the nodes %v", got)
	}
	s.from(driver, &wire.Release{IDs: []ids.ObjectID{of.ID.Return(0)}})
	if got := s.freedAt(id); !slices.Contains(got, 0) {
		t.Errorf("it is freed on the nodes %v with what was made of it", got)
	}
	s.wantEmpty()
}

// The job's own node is to keep a value of which it drops its copy at that moment: whoever kept it until then is told of no other copy before the node has said that it
// has one, and so does not drop the last.
func TestTwoEvictionsLoseNoKeptValue(t *testing.T) {
	for _, evicted := range []bool{true, false} {
		s := newScript(t, Config{})
		far := s.elsewhere(farNode, 1)
		once := s.submit(&wire.TaskOptions{Func: "once", NumReturns: 1})
		l := s.grant(far)
		x := s.executed(far)
		arg := once.ID.Return(0)
		s.from(far, &wire.Seal{ID: arg, Attempt: x.Attempt, Size: 8},
			&wire.Done{Task: once.ID, Attempt: x.Attempt, Lease: l, Results: []wire.Result{stored()}, Times: wire.Times{Started: 1, Ended: 9e6}})
		s.step(FromSched{sched.Reclaim{Lease: l}})
		s.from(driver, &wire.Get{ID: arg, Fetch: true})
		s.step(FromStore{Node: 0, Msg: objectstore.Imported{ID: arg, Attempt: x.Attempt}})
		mayDrop := func() bool { // whether the other node was told of a copy elsewhere
			return slices.ContainsFunc(s.out, func(e Effect) bool {
				at, is := e.msg.(objectstore.Located)
				return is && e.Node == farNode && at.ID == arg && len(at.On) > 0
			})
		}
		spec := s.madeFrom(far, arg)
		if mayDrop() {
			t.Fatal("the other node may drop what may be the last copy")
		}
		if !evicted {
			s.step(FromStore{Node: 0, Msg: objectstore.Imported{ID: arg, Attempt: x.Attempt}})
			if on := s.c.copies.of(s.c.object(arg)); !mayDrop() || on[0] != 0 {
				t.Errorf("the node has it still, and it is on %v; the other may drop it: %v", on, mayDrop())
			}
		} else {
			for _, m := range []objectstore.OwnerMsg{objectstore.Evicted{ID: arg}, objectstore.Lost{ID: arg, Copy: x.Attempt, Err: errs.New(errs.CodeObjectLost, "gone")}} {
				if s.step(FromStore{Node: 0, Msg: m}); mayDrop() {
					t.Errorf("after %T the other node may drop the last copy", m)
				}
			}
			if o := s.c.object(arg); o.state != object.Stored || s.c.copies.of(o)[0] != farNode {
				t.Errorf("it is %v on %v", o.state, s.c.copies.of(o))
			}
		}
		s.from(driver, &wire.Release{IDs: []ids.ObjectID{spec.ID.Return(0)}})
		if got := s.freedAt(arg); !slices.Contains(got, farNode) {
			t.Errorf("it is freed on the nodes %v with what was made of it", got)
		}
		s.wantEmpty()
	}
}
