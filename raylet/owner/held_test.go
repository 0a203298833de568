package owner

import (
	"testing"

	"mobula/internal/ids"
	"mobula/wire"
)

// The step in which a core goes on with what it kept back may be its last: its effects have
// not run, so the next core must be given all of it again.
func TestWhatWasKeptBackIsKeptForTheStepThatGoesOn(t *testing.T) {
	c, err := Rebuild(Config{Job: 1, InlineBudget: 1 << 20}, func(func(uint64, []byte) bool) {})
	if err != nil {
		t.Fatal(err)
	}
	c.Step(1, Restored{Epoch: 7, Clients: []ClientJoined{{Client: 5, Role: wire.RoleDriver}, {Client: 6, Role: wire.RoleWorker}}})
	answer := func(id uint64) FromClient {
		return FromClient{Client: ids.ClientID(id), Msgs: []wire.Msg{&wire.Holdings{Component: wire.ComponentOwner, Epoch: 7}}}
	}
	c.Step(2, answer(5))
	if held, at := c.Held(); len(held) != 1 || at != -1 {
		t.Fatalf("one client of two has answered: %d events are kept back, at %d", len(held), at)
	}
	c.Step(3, answer(6))
	if held, at := c.Held(); len(held) != 2 || at != -1 {
		t.Errorf("after the step that went on: %d events are kept back, at %d; want 2, none in hand", len(held), at)
	}
	c.Step(4, Timer{})
	if held, _ := c.Held(); len(held) != 0 {
		t.Errorf("a step later %d events are still kept back", len(held))
	}
}
