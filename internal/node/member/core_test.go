package member

import (
	"slices"
	"testing"
)

// Whatever comes, and however often, each thing is told once and in its order. The connection of a process that ended first is read to
// its end.
func TestMemberTellsEachThingOnce(t *testing.T) {
	left := []Effect{AwaitExit, TellPeers, DropPins, Stop}
	ended := []Effect{AwaitExit, EndReading, TellPeers, DropPins, Stop}
	for _, c := range []struct {
		evs  []Event
		want []Effect
	}{
		{[]Event{Leaves, Exited}, left},
		{[]Event{Exited, Leaves, Exited}, ended},
		{[]Event{Exited, Exited, Done, Leaves, Done}, ended},
		{[]Event{Leaves, Leaves, Exited, Exited, Leaves}, left},
		{[]Event{Done, Leaves, Done, Exited}, left},
		{[]Event{Leaves, Exited, Done}, left},
	} {
		core := &Core{}
		var did []Effect
		for _, ev := range append([]Event{Watch}, c.evs...) {
			did = append(did, core.Step(0, ev)...)
		}
		if !slices.Equal(did, c.want) {
			t.Errorf("%v: did %v, want %v", c.evs, did, c.want)
		}
	}
}

func TestMemberTableIsWhole(t *testing.T) {
	for _, st := range []State{Joined, Ended, Left, Gone} {
		for _, ev := range []Event{Watch, Leaves, Done, Exited} {
			if _, ok := steps[st][ev]; !ok {
				t.Errorf("state %d says nothing of event %d", st, ev)
			}
		}
	}
}
