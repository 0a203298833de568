package client

import (
	"testing"

	"mobula/internal/direct"
	"mobula/internal/direct/shell"
	"mobula/internal/testkit"
	"mobula/wire"
)

// Calls that nobody waits for use the memory of earlier ones. Each has its own arguments and ends once, and those that a cancel or a late adoption has found are left alone.
func TestToldCallsUseMemoryAgain(t *testing.T) {
	const n = 500
	stop, goOn := make(chan struct{}), make(chan struct{})
	ran := make(map[string]int) // of the actor, which runs one at once
	a := newHost(t, func(s *wire.TaskSpec) *direct.Outcome {
		name := string(s.Args[0].Value.Data)
		if ran[name]++; name == "stop" {
			stop <- struct{}{}
			<-goOn
		}
		return new(direct.Outcome)
	})
	opts := &wire.TaskOptions{Func: "told"}
	tell := func(name string) {
		a.call(opts, func(s *wire.TaskSpec) { s.Args = []wire.Arg{{Value: wire.Value{Data: []byte(name)}}} })
	}
	name := func(i int) string { return string([]byte{'t', byte(i), byte(i >> 8)}) }
	tell("stop")
	<-stop
	for i := range n {
		tell(name(i))
	}
	s := &a.c.straight
	found := s.calls.Find(a.actor, func(k *shell.Call) bool {
		data := messageOf(k).spec.Args[0].Value.Data
		return data[0] == 't' && data[1] == 7
	})
	for _, k := range found {
		messageOf(k).Announce() // the owner knows it from now on
	}
	goOn <- struct{}{}
	for i := range n {
		tell(name(n + i))
	}
	all := func() bool { return s.room.left.Load() == straightWindow }
	testkit.Eventually(t, "all have ended", all)
	for _, k := range found {
		k.Expired() // it comes late
		k.Cancel(direct.Wish{Force: true})
	}
	tell("stop") // and the ones that run now are others
	<-stop
	for _, k := range found {
		k.Cancel(direct.Wish{Force: true})
	}
	goOn <- struct{}{}
	testkit.Eventually(t, "all have ended", all)
	if len(found) != 2 || ran["stop"] != 2 {
		t.Errorf("%d calls were found, want 2; the one that stops ran %d times", len(found), ran["stop"])
	}
	for i := range 2 * n {
		if ran[name(i)] != 1 {
			t.Errorf("call %d ran %d times", i, ran[name(i)])
		}
	}
	for _, k := range found {
		if m := messageOf(k); m.spec == nil || !m.told.Load() {
			t.Error("a call that the owner knows was used again")
		}
	}
}
