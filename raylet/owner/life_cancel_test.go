package owner

import (
	"testing"
	"time"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/raylet/owner/task"
	"mobula/raylet/sched"
	"mobula/wire"
)

// twoPushed pushes two tasks over one lease.
func (s *script) twoPushed() (first, second *wire.TaskSpec, l ids.LeaseID) {
	s.t.Helper()
	warm := s.submit(simple)
	l = s.grant(worker)
	x := s.executed(worker)
	s.from(worker, &wire.Done{Task: warm.ID, Attempt: x.Attempt, Lease: l, Results: []wire.Result{inline("")}, Times: wire.Times{Started: s.now, Ended: s.now + 1000}})
	first, second = s.submit(simple), s.submit(simple)
	if l := s.c.tasks.task(second.ID).lease; l == nil || l.lane.Len() != 2 {
		s.t.Fatal("not both are pushed")
	}
	return first, second, l
}

// A task that was cancelled while it lay pushed, and that its worker gives back, does not run.
func TestACancelledTaskThatIsGivenBackDoesNotRun(t *testing.T) {
	s := newScript(t, Config{})
	first, second, l := s.twoPushed()
	s.from(driver, &wire.Cancel{Task: second.ID})
	s.from(worker, &wire.Blocked{Task: first.ID, Lease: l, Returned: []ids.TaskID{second.ID}})
	s.wantError(second.ID.Return(0), errs.CodeCancelled)
}

// The same where its worker dies.
func TestACancelledTaskWhoseWorkerDiesDoesNotRun(t *testing.T) {
	s := newScript(t, Config{})
	_, second, l := s.twoPushed()
	s.from(driver, &wire.Cancel{Task: second.ID})
	s.kill(worker, errs.CodeWorkerCrashed, 0, l)
	s.wantError(second.ID.Return(0), errs.CodeCancelled)
}

// A cancel that insists does so though the core is lost meanwhile.
func TestACancelInsistsAfterARebuild(t *testing.T) {
	s := newScript(t, Config{})
	spec := s.submit(simple)
	l := s.grant(worker)
	x := s.executed(worker)
	s.from(driver, &wire.Cancel{Task: spec.ID, Insist: true})
	s.rebuild(7)
	h := holds(7)
	h.Handles = []ids.ObjectID{spec.ID.Return(0)}
	s.from(driver, h)
	s.from(worker2, holds(7))
	h = holds(7)
	h.Tasks = []wire.Attempt{{Task: spec.ID, Attempt: x.Attempt, Lease: l}}
	s.from(worker, h)
	s.pass(2 * time.Second)
	if m := sent[*wire.CancelTask](s, worker); len(m) != 1 || !m[0].Abandon {
		t.Fatalf("after the grace the worker is told %+v", m)
	}
	s.wantError(spec.ID.Return(0), errs.CodeCancelled)
}

// A task that has failed and that its worker has still holds up its lane until it is given up, after a rebuild too.
func TestAFailedTaskHoldsUpItsLaneAfterARebuild(t *testing.T) {
	s := newScript(t, Config{})
	spec := s.spec(simple)
	spec.Deadline = s.now + int64(time.Second)
	s.from(driver, &wire.Submit{Spec: spec})
	l := s.grant(worker)
	x := s.executed(worker)
	s.pass(time.Second)
	s.wantError(spec.ID.Return(0), errs.CodeDeadline)
	s.rebuild(7)
	next := s.spec(simple)
	h := holds(7)
	h.Handles = []ids.ObjectID{spec.ID.Return(0)}
	s.from(driver, h, &wire.Submit{Spec: next})
	s.from(worker2, holds(7))
	h = holds(7)
	h.Tasks = []wire.Attempt{{Task: spec.ID, Attempt: x.Attempt, Lease: l}}
	s.from(worker, h)
	if m := sent[*wire.CancelTask](s, worker); len(m) != 1 || m[0].Abandon {
		t.Errorf("the worker is told %+v", m)
	}
	s.step(FromSched{sched.Granted{Key: sched.ClassKey{Job: 1, Class: s.c.classOf(0, simple).id}, Lease: l, Worker: worker, Epoch: 7}})
	s.pass(2 * time.Second)
	if m := sent[*wire.CancelTask](s, worker); len(m) != 1 || !m[0].Abandon {
		t.Errorf("after the grace the worker is told %+v", m)
	}
	if m := told[sched.DrainWorker](s); len(m) != 1 || m[0].Worker != worker {
		t.Errorf("the scheduler is told %+v", m)
	}
	if s.state(next) == task.Running {
		t.Error("the next task is in line behind it")
	}
}
