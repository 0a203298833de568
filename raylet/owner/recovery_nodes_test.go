package owner

import (
	"testing"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/raylet/owner/task"
	"mobula/raylet/sched"
	"mobula/wire"
)

// A lease may be granted, and its node end, while a rebuilt core waits for its clients: nothing is pushed to a worker that is gone.
func TestALeaseOfANodeThatEndedWhileACoreWaitedIsNone(t *testing.T) {
	const there = ids.ClientID(1<<40 | 5)
	s := newScript(t, Config{})
	spec := s.submit(simple)
	key := sched.ClassKey{Job: 1, Class: s.c.tasks.task(spec.ID).class.id}
	s.step(ClientJoined{Client: there, Role: wire.RoleWorker})
	s.rebuild(1)
	s.step(FromSched{sched.Granted{Key: key, Lease: 7, Worker: there}})
	s.step(NodeGone{Node: there.Home(), Err: errs.New(errs.CodeWorkerCrashed, "it is dead")})
	h := holds(1)
	h.Handles = []ids.ObjectID{spec.ID.Return(0)}
	s.from(driver, h)
	s.from(worker, holds(1))
	s.from(worker2, holds(1))
	if m := sent[*wire.Exec](s, there); len(m) != 0 || s.state(spec) != task.PendingNode {
		t.Errorf("%d messages are pushed to who is gone, and the task is %v", len(m), s.state(spec))
	}
}
