package owner

import (
	"testing"
	"time"

	"mobula/internal/errs"
	"mobula/raylet/owner/task"
	"mobula/raylet/sched"
	"mobula/wire"
)

// One task ran in the process that died: it is charged, and after its retries it fails.
func TestTheCulpritIsChargedUntilItsRetriesAreGone(t *testing.T) {
	s := newScript(t, Config{})
	spec := s.submit(simple)
	id := worker
	for attempt := uint32(1); attempt <= 4; attempt++ {
		l := s.grant(id)
		if x := s.executed(id); x.Attempt != attempt {
			t.Fatalf("attempt %d, want %d", x.Attempt, attempt)
		}
		s.kill(id, errs.CodeWorkerCrashed, 0, l)
		id += 10
		s.step(ClientJoined{Client: id, Role: wire.RoleWorker})
		if attempt > 1 && attempt < 4 && s.state(spec) != task.Backoff {
			t.Fatalf("after attempt %d it is %v: it does not back off", attempt, s.state(spec))
		}
		s.pass(time.Second)
	}
	s.wantError(spec.ID.Return(0), errs.CodeWorkerCrashed)
}

// Several tasks ran: none is charged, each runs again alone; the one that does it again is the
// culprit, and the others are cleared.
func TestSuspectsRunAloneUntilTheCulpritIsFound(t *testing.T) {
	s := newScript(t, Config{})
	opts := &wire.TaskOptions{Func: "suspect", NumReturns: 1, MaxRetries: 1}
	bad, good := s.submit(opts), s.submit(opts)
	l1 := s.grant(worker)
	l2 := s.grant(worker)
	queued := s.submit(opts)
	s.kill(worker, errs.CodeWorkerCrashed, 0, l1, l2)
	if n := s.c.stats.Retried; n != 0 {
		t.Fatalf("%d attempts are charged", n)
	}
	if s.c.tasks.task(queued.ID).flags&taskIsolated != 0 {
		t.Error("a task that had not begun is suspected")
	}
	var solo sched.ClassKey
	for _, k := range s.c.classes.byID {
		if k.isolated {
			solo = sched.ClassKey{Job: 1, Class: k.id}
			if k.ready.n != 2 || !k.opts.Isolate {
				t.Fatalf("%d tasks wait isolated", k.ready.n)
			}
		}
	}
	s.step(FromSched{sched.Granted{Key: solo, Lease: 50, Worker: worker2}})
	first := s.executed(worker2)
	s.kill(worker2, errs.CodeWorkerCrashed, 0, 50)
	if s.c.stats.Retried != 1 {
		t.Errorf("%d attempts are charged, want that of the culprit", s.c.stats.Retried)
	}
	other := bad.ID
	if first.Spec.ID == bad.ID {
		other = good.ID
	}
	if s.c.tasks.task(other).flags&taskIsolated != 0 {
		t.Error("the other suspect is not cleared")
	}
}

// A task killed for memory is not charged; it waits longer each time, runs alone, and asks
// for the peak that was seen when it ran alone. Only the node's size ends that.
func TestOutOfMemoryRunsAgainLaterAloneAndLarger(t *testing.T) {
	s := newScript(t, Config{})
	spec := s.submit(simple)
	id := worker
	wait := time.Second
	for range 8 {
		l := s.grant(id)
		s.kill(id, errs.CodeOutOfMemory, 500<<20, l)
		if s.state(spec) != task.Backoff {
			t.Fatalf("it is %v", s.state(spec))
		}
		s.pass(wait - 10*time.Microsecond)
		if s.state(spec) != task.Backoff {
			t.Fatalf("it runs again before %v", wait)
		}
		s.pass(10 * time.Microsecond)
		if s.state(spec) != task.PendingNode {
			t.Fatalf("after %v it is %v", wait, s.state(spec))
		}
		wait = min(2*wait, time.Minute)
		id += 10
		s.step(ClientJoined{Client: id, Role: wire.RoleWorker})
	}
	var k *classRec
	for _, x := range s.c.classes.byID {
		if x.ready.n > 0 {
			k = x
		}
	}
	if !k.opts.Isolate || len(k.opts.Resources) != 2 || k.opts.Resources[1].Amount != 512<<20 {
		t.Errorf("it asks for %+v", k.opts)
	}
	if s.c.stats.Retried != 0 || s.c.stats.OOMKills != 8 {
		t.Errorf("it is charged %d times, %d of 8 kills are counted", s.c.stats.Retried, s.c.stats.OOMKills)
	}
	s.step(FromSched{sched.Infeasible{Key: sched.ClassKey{Job: 1, Class: k.id}, Err: errs.New(errs.CodeUnschedulable, "memory: 512 MiB asked, 256 held")}})
	s.wantError(spec.ID.Return(0), errs.CodeOutOfMemory)
}
