package owner

import (
	"testing"

	"mobula/internal/ids"
	"mobula/raylet/sched"
	"mobula/wire"
)

// A lease on which nothing is left after a task was given back goes the way of every lease that has nothing
// to do: back at once where it is asked for.
func TestALeaseThatGaveBackItsLastTaskIsReturned(t *testing.T) {
	s := newScript(t, Config{})
	spec := s.submit(simple)
	l := s.grant(worker)
	s.executed(worker)
	s.step(FromSched{sched.Reclaim{Lease: l}})
	if r := told[sched.Return](s); len(r) != 0 {
		t.Fatalf("returned while it has a task: %+v", r)
	}
	s.from(worker, &wire.Blocked{Lease: l, Returned: []ids.TaskID{spec.ID}})
	if r := told[sched.Return](s); len(r) != 1 || r[0].Lease != l {
		t.Errorf("nothing is on the lease and it stays: %+v", r)
	}
}

// Of a worker that ended before it joined nothing is kept, whatever was granted on it.
func TestAWorkerThatNeverJoinsIsForgotten(t *testing.T) {
	const stranger ids.ClientID = 77
	s := newScript(t, Config{})
	s.submit(simple)
	l := s.grant(stranger)
	s.step(FromSched{sched.Revoked{Lease: l, Worker: stranger}})
	s.pass(s.c.cfg.SettleGrace)
	if len(s.c.leases) != 0 || s.c.clients[stranger] != nil {
		t.Errorf("%d leases are left, the worker's record is %+v", len(s.c.leases), s.c.clients[stranger])
	}
	spec := s.submit(simple)
	l = s.grant(stranger)
	s.step(FromSched{sched.Reclaim{Lease: l}})
	s.from(stranger, &wire.Blocked{Lease: l, Returned: []ids.TaskID{spec.ID}})
	s.step(ClientJoined{Client: stranger, Role: wire.RoleWorker})
	if cl := s.c.clients[stranger]; cl == nil || !cl.joined {
		t.Errorf("it came after all, and is %+v", cl)
	}
}
