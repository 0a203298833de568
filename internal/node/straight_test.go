package node

import (
	"os"
	"testing"
	"time"

	"mobula/internal/client"
	"mobula/internal/ids"
	"mobula/internal/node/outlet"
	"mobula/internal/testkit"
	"mobula/wire"
)

// askedWay joins a job as a client in this process that keeps what it is told of the way to an actor, and asks for one.
func askedWay(t *testing.T, n *Node, c *client.Client, actor ids.ActorID) *wire.Way {
	t.Helper()
	l := &n.locals
	s, err := l.sessions.begin(wire.RoleWorker, c.Root().Task.Job(), int32(os.Getpid()))
	if err != nil {
		t.Fatal(err)
	}
	ways := make(chan *wire.Way, 1)
	s.Outlet = &outlet.Local{Deliver: func(ms []wire.Msg) {
		for _, m := range ms {
			if w, ok := m.(*wire.Way); ok {
				ways <- w
			}
		}
	}}
	if err := l.members.join(s); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.members.leave(s, nil) })
	if err := (&localPort{l, s}).Send(&wire.AskWay{Actor: actor}); err != nil {
		t.Fatal(err)
	}
	select {
	case w := <-ways:
		return w
	case <-time.After(testkit.Patience()):
		t.Fatal("nobody answers")
		return nil
	}
}

// A client in the node's process is given the way to an actor that lives there, where calls go straight.
func TestTheWayToAnActorInThisProcess(t *testing.T) {
	for _, on := range []bool{false, true} {
		n, c := running(t, Config{CPUs: 1, CallsByOwner: !on}, Telemetry{})
		h := submit2(t, c, wire.TaskActorCreate, &wire.TaskOptions{Func: "state/actor", NumReturns: 1})
		if _, err := c.Get(t.Context(), h); err != nil {
			t.Fatal(err)
		}
		w := askedWay(t, n, c, ids.ActorID(h.ID().Task))
		if w.Err != nil || w.ByOwner == on || (w.Channel != 0) != on || (w.Instance != 0) != on {
			t.Errorf("straight calls %v: the way is %+v", on, w)
		}
	}
}

// A client in this process of a job whose owner is on another node is told that its calls go by that owner, and none of what is said of straight calls leaves
// the process.
func TestCallsOfAnotherNodesJobGoByItsOwner(t *testing.T) {
	var told []wire.Msg
	out := &outlet.Local{Deliver: func(ms []wire.Msg) { told = append(told, ms...) }}
	s := makeSession(1, wire.RoleWorker, 1, 0)
	s.Outlet = out
	spec := &wire.TaskSpec{ID: ids.Derive(ids.RootTask(1, 1), 1)}
	kept := s.refer([]wire.Msg{&wire.AskWay{}, &wire.Get{}, &wire.Adopt{Spec: spec}, &wire.HangUp{}, &wire.Encoded{}, &wire.Release{}})
	if len(kept) != 4 {
		t.Fatalf("%d messages go on", len(kept))
	}
	if m, ok := kept[1].(*wire.Submit); !ok || m.Spec != spec {
		t.Errorf("an adopted call is sent as %T", kept[1])
	}
	if len(told) != 2 {
		t.Fatalf("the client is told %v", told)
	}
	way, isWay := told[0].(*wire.Way)
	adopted, isAdopted := told[1].(*wire.Adopted)
	if !isWay || !way.ByOwner || !isAdopted || adopted.Task != spec.ID {
		t.Errorf("the client is told %+v and %+v", told[0], told[1])
	}
}

// Only "0" turns straight calls off.
func TestStraightCallsAreOnUnlessTheEnvironmentSays(t *testing.T) {
	for said, want := range map[string]bool{"": false, "0": true, "1": false, "false": false} {
		if got := callsByOwner(func(string) string { return said }); got != want {
			t.Errorf("%s=%s: %v", envStraight, said, got)
		}
	}
}
