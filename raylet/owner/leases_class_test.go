package owner

import (
	"fmt"
	"testing"
	"time"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/objectstore"
	"mobula/raylet/sched"
	"mobula/wire"
)

// manyClasses runs a task of each of so many classes that the core forgets those that nobody uses.
func (s *script) manyClasses() {
	s.t.Helper()
	s.trust = true
	for i := range maxClasses + 8 {
		s.lease++
		spec := s.submit(&wire.TaskOptions{Func: fmt.Sprint("f", i), NumReturns: 1})
		want := told[sched.Want](s)
		if len(want) != 1 {
			s.t.Fatalf("task %d: %d wants", i, len(want))
		}
		s.step(FromSched{sched.Granted{Key: want[0].Key, Lease: s.lease, Worker: worker2}})
		s.done(worker2, s.lease, s.executed(worker2), inline(""))
		s.from(driver, &wire.Release{IDs: []ids.ObjectID{spec.ID.Return(0)}})
		s.step(FromSched{sched.Reclaim{Lease: s.lease}})
	}
	s.trust = false
}

// wanted answers the only want of the last step with a lease.
func (s *script) wanted(cl ids.ClientID) wire.ExecTask {
	s.t.Helper()
	want := told[sched.Want](s)
	if len(want) != 1 || want[0].Backlog != 1 {
		s.t.Fatalf("wanted is %v", want)
	}
	s.lease++
	s.step(FromSched{sched.Granted{Key: want[0].Key, Lease: s.lease, Worker: cl}})
	return s.executed(cl)
}

func TestAnActorRestartsThoughItsClassWasForgotten(t *testing.T) {
	s := newScript(t, Config{})
	a, l := s.spawn(&wire.TaskOptions{Func: "A", NumReturns: 1, MaxRestarts: 1}, worker)
	s.manyClasses()
	s.kill(worker, 0, 0, l)
	if x := s.wanted(worker2); x.Spec.ID != a.ID {
		t.Fatalf("pushed is %v", x.Spec.ID)
	}
}

func TestALostResultIsMadeAgainThoughItsClassWasForgotten(t *testing.T) {
	s := newScript(t, Config{})
	spec := s.submit(simple)
	l := s.grant(worker)
	x := s.executed(worker)
	s.from(worker, &wire.Seal{ID: spec.ID.Return(0), Attempt: x.Attempt, Size: 8})
	s.done(worker, l, x, wire.Result{Kind: wire.ResultStored, Size: 8})
	s.step(FromSched{sched.Reclaim{Lease: l}})
	s.manyClasses()
	s.step(FromStore{Msg: objectstore.Lost{ID: spec.ID.Return(0)}})
	if x := s.wanted(worker2); x.Spec.ID != spec.ID {
		t.Fatalf("pushed is %v", x.Spec.ID)
	}
}

func TestAnIsolatedTaskRunsAgainThoughItsClassWasForgotten(t *testing.T) {
	s := newScript(t, Config{})
	spec := s.submit(simple)
	l := s.grant(worker)
	s.kill(worker, errs.CodeOutOfMemory, 1, l)
	s.manyClasses()
	s.pass(time.Second)
	if x := s.wanted(worker2); x.Spec.ID != spec.ID {
		t.Fatalf("pushed is %v", x.Spec.ID)
	}
}
