package owner

import (
	"maps"
	"testing"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/objectstore"
	"mobula/raylet/owner/task"
	"mobula/raylet/sched"
	"mobula/wire"
)

// An owner's core dies in the same moment as the only node that has an object which somebody waits for: whichever is heard of first, and whatever of that was done
// before the core was lost, the object is made again, and who waits gets it.
func TestAnOwnerAndTheHolderOfAnObjectDieTogether(t *testing.T) {
	for _, c := range []struct {
		name string
		die  func(s *script, id ids.ObjectID, gone NodeGone)
	}{
		{"the node's end is in the log", func(s *script, id ids.ObjectID, gone NodeGone) {
			s.step(gone)
			s.rebuild(1)
			answerRestart(s, id)
		}},
		{"the node's end was in hand", func(s *script, id ids.ObjectID, gone NodeGone) {
			logs := maps.Clone(s.logs)
			s.step(gone)
			s.logs = logs
			s.rebuild(1)
			s.step(gone)
			answerRestart(s, id)
		}},
		{"it comes while the core waits for its clients", func(s *script, id ids.ObjectID, gone NodeGone) {
			s.rebuild(1)
			s.from(worker, holds(1))
			s.step(gone)
			answerRestart(s, id)
		}},
		{"it comes after them", func(s *script, id ids.ObjectID, gone NodeGone) {
			s.rebuildWith(Restored{Epoch: 1, Nodes: []ids.Home{gone.Node}})
			answerRestart(s, id)
			s.step(gone)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newScript(t, Config{})
			far := s.elsewhere(5, 1)
			spec := s.submit(simple)
			l, id := s.grant(far), spec.ID.Return(0)
			x := s.executed(far)
			s.from(far, &wire.Seal{ID: id, Attempt: x.Attempt, Size: big})
			s.done(far, l, x, wire.Result{Kind: wire.ResultStored, Size: big})
			s.step(FromSched{sched.Revoked{Lease: l, Worker: far, Err: errs.New(errs.CodeWorkerCrashed, "its node is dead")}})
			s.from(driver, &wire.Get{ID: id, Fetch: true})
			c.die(s, id, NodeGone{Node: far.Home(), Err: errs.New(errs.CodeWorkerCrashed, "it is dead")})
			// The store was asked for it by the core that is lost, and hears that the last node which had it is dead.
			s.step(FromStore{Msg: objectstore.Lost{ID: id, Client: driver, Copy: x.Attempt, Err: errs.New(errs.CodeObjectLost, "it is on no node any more")}})
			if s.state(spec) != task.PendingNode {
				t.Fatalf("the task is %v, and its result nowhere; the store was told %+v", s.state(spec), s.out)
			}
			l = s.grant(worker)
			s.done(worker, l, s.executed(worker), inline("again"))
			// Its get may be known twice, by what the driver said and by the store: a client takes the first answer.
			if r := sent[*wire.Resolved](s, driver); len(r) == 0 || string(r[0].Result.Value.Data) != "again" {
				t.Errorf("who waits gets %+v", r)
			}
		})
	}
}

// answerRestart has the clients say what they hold: the driver, that it waits for an object.
func answerRestart(s *script, id ids.ObjectID) {
	h := holds(1)
	h.Handles, h.Gets = []ids.ObjectID{id}, []wire.Get{{ID: id, Fetch: true}}
	s.from(worker, holds(1))
	s.from(worker2, holds(1))
	s.from(driver, h)
}

// The job's node is started again, and another node has dropped the job. A task whose results lay there runs once more for all of them, as soon as the store of the
// job's node has said what it has: not again for each as that is asked for, with a retry each.
func TestResultsThatLayOnAnotherNodeAreMadeAgainTogether(t *testing.T) {
	s := newScript(t, Config{})
	far := s.elsewhere(5, 1)
	spec := s.submit(&wire.TaskOptions{Func: "split", NumReturns: 3, MaxRetries: 1})
	stored := wire.Result{Kind: wire.ResultStored, Size: big}
	l := s.grant(far)
	x := s.executed(far)
	for i := range 3 {
		s.from(far, &wire.Seal{ID: spec.ID.Return(i), Attempt: x.Attempt, Size: big})
	}
	s.done(far, l, x, stored, stored, stored)
	here := spec.ID.Return(1)
	s.step(FromStore{Msg: objectstore.Imported{ID: here, Attempt: x.Attempt}}) // of which the log does not know
	s.step(FromSched{sched.Revoked{Lease: l, Worker: far, Err: errs.New(errs.CodeWorkerCrashed, "its node is gone")}})

	s.rebuild(1)
	h := holds(1)
	h.Handles = []ids.ObjectID{spec.ID.Return(0), here, spec.ID.Return(2)}
	s.from(worker, holds(1))
	s.from(worker2, holds(1))
	s.from(driver, h)
	s.step(FromStore{Msg: objectstore.Inventory{Job: 1, Asked: true, Left: []objectstore.Left{{ID: here, Attempt: 9, Client: worker}}}}) // a client is gone
	if s.state(spec) != task.Finished {
		t.Fatalf("before the store has said what it has the task is %v", s.state(spec))
	}
	s.step(FromStore{Msg: objectstore.Inventory{Job: 1, Asked: true, Ask: 1, Objects: []objectstore.SealedInfo{
		{ID: spec.ID.Return(0), Attempt: x.Attempt, Size: big, Elsewhere: true}, {ID: here, Attempt: x.Attempt, Size: big},
	}}})
	if s.state(spec) != task.PendingNode {
		t.Fatalf("two of its results are nowhere, and the task is %v", s.state(spec))
	}
	l = s.grant(worker)
	x = s.executed(worker)
	for i := range 3 {
		s.from(worker, &wire.Seal{ID: spec.ID.Return(i), Attempt: x.Attempt, Size: big})
	}
	s.done(worker, l, x, stored, stored, stored)
	s.step(FromStore{Msg: objectstore.Inventory{Job: 1, Asked: true, Ask: 1}}) // again: it is settled
	if s.state(spec) != task.Finished || s.c.stats.Reconstructed != 1 {
		t.Errorf("then the task is %v, after %d runs for lost results", s.state(spec), s.c.stats.Reconstructed)
	}
}
