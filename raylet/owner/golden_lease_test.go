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
