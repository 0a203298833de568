package owner

import (
	"slices"
	"testing"

	"mobula/internal/ids"
	"mobula/raylet/cluster"
	"mobula/raylet/sched"
	"mobula/wire"
)

// Who chooses nodes is told of the first object that another node's store knows, and of the last, and all of it again when it asks what the owner holds.
func TestWhoChoosesNodesKnowsWhereObjectsAre(t *testing.T) {
	const there = ids.ClientID(1<<40 | 5)
	s := newScript(t, Config{})
	s.step(ClientJoined{Client: there, Role: wire.RoleWorker})
	is := func(when string, want ...bool) {
		t.Helper()
		var got []bool
		for _, h := range told[cluster.Holds](s) {
			if h.Job != 1 || h.Node != there.Home() {
				t.Errorf("%s: %+v", when, h)
			}
			got = append(got, h.Objects)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s it is told %v, want %v", when, got, want)
		}
	}
	var specs []*wire.TaskSpec
	for _, want := range [][]bool{{true}, nil} {
		spec := s.submit(simple)
		l := s.grant(there)
		x := s.executed(there)
		s.from(there, &wire.Seal{ID: spec.ID.Return(0), Attempt: x.Attempt, Size: 8},
			&wire.Done{Task: spec.ID, Attempt: x.Attempt, Lease: l, Results: []wire.Result{stored()}, Times: wire.Times{Started: 1, Ended: 9e6}})
		is("after a seal there", want...)
		s.step(FromSched{sched.Reclaim{Lease: l}})
		specs = append(specs, spec)
	}
	s.step(FromSched{sched.Resync{Epoch: 3}})
	is("when it asks", true)
	s.from(driver, &wire.Release{IDs: []ids.ObjectID{specs[0].ID.Return(0)}})
	is("while one is left")
	s.from(driver, &wire.Release{IDs: []ids.ObjectID{specs[1].ID.Return(0)}})
	is("when none is left", false)
}
