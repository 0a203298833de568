package node

import (
	"testing"

	"mobula/internal/direct/talk"
	"mobula/internal/ids"
	"mobula/internal/node/outlet"
	"mobula/wire"
)

// A client in this process of a job whose owner is on another node is told that its calls go by that owner, and none of what is said of straight calls leaves
// the process.
func TestCallsOfAnotherNodesJobGoByItsOwner(t *testing.T) {
	var told []wire.Msg
	out := &outlet.Local{Deliver: func(ms []wire.Msg) { told = append(told, ms...) }}
	s := makeSession(1, wire.RoleWorker, 1, 0)
	s.Outlet = out
	spec := &wire.TaskSpec{ID: ids.Derive(ids.RootTask(1, 1), 1)}
	kept := s.refer([]wire.Msg{&talk.AskWay{}, &wire.Get{}, &talk.Adopt{Spec: spec}, &talk.HangUp{}, &wire.Release{}})
	if len(kept) != 3 {
		t.Fatalf("%d messages go on", len(kept))
	}
	if m, ok := kept[1].(*wire.Submit); !ok || m.Spec != spec {
		t.Errorf("an adopted call is sent as %T", kept[1])
	}
	if len(told) != 2 {
		t.Fatalf("the client is told %v", told)
	}
	way, isWay := told[0].(*talk.Way)
	adopted, isAdopted := told[1].(*talk.Adopted)
	if !isWay || !way.ByOwner || !isAdopted || adopted.Task != spec.ID {
		t.Errorf("the client is told %+v and %+v", told[0], told[1])
	}
}

// Only "1" turns straight calls on.
func TestStraightCallsAreOffUnlessTheEnvironmentSays(t *testing.T) {
	for said, want := range map[string]bool{"": false, "0": false, "1": true, "true": false} {
		if got := straightCalls(func(string) string { return said }); got != want {
			t.Errorf("%s=%s: %v", envStraight, said, got)
		}
	}
}
