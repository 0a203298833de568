package owner

import (
	"testing"

	"mobula/internal/ids"
	"mobula/raylet/sched"
	"mobula/wire"
)

// An actor may have any number of callers.
func TestAnActorWithManyCallers(t *testing.T) {
	s := newScript(t, Config{})
	a, _ := s.spawn(counter, worker)
	s.trust = true
	for i := range manyCallers + 8 {
		spec := s.callSpec(a, 1)
		spec.Parent = ids.Derive(s.root, uint64(1e6+i))
		s.from(driver, &wire.Submit{Spec: spec})
	}
	s.trust = false
	s.submit(simple)
	l := s.grant(worker2)
	s.done(worker2, l, s.executed(worker2), inline(""))
	s.step(FromSched{sched.Reclaim{Lease: l}})
	if got := told[sched.Return](s); len(got) != 1 {
		t.Errorf("%d leases are returned", len(got))
	}
}
