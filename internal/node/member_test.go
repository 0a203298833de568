package node

import (
	"slices"
	"testing"
)

// Whatever comes, and however often, each thing is told once and in its order. The connection of a process that ended first is read to
// its end.
func TestMemberTellsEachThingOnce(t *testing.T) {
	left := []memberEffect{awaitExit, tellPeers, dropPins, stopMember}
	ended := []memberEffect{awaitExit, endReading, tellPeers, dropPins, stopMember}
	for _, c := range []struct {
		evs  []memberEvent
		want []memberEffect
	}{
		{[]memberEvent{eventLeft, eventExited}, left},
		{[]memberEvent{eventExited, eventLeft, eventExited}, ended},
		{[]memberEvent{eventExited, eventExited, eventDone, eventLeft, eventDone}, ended},
		{[]memberEvent{eventLeft, eventLeft, eventExited, eventExited, eventLeft}, left},
		{[]memberEvent{eventDone, eventLeft, eventDone, eventExited}, left},
		{[]memberEvent{eventLeft, eventExited, eventDone}, left},
	} {
		core := &memberCore{}
		var did []memberEffect
		for _, ev := range append([]memberEvent{eventWatch}, c.evs...) {
			did = append(did, core.Step(0, ev)...)
		}
		if !slices.Equal(did, c.want) {
			t.Errorf("%v: did %v, want %v", c.evs, did, c.want)
		}
	}
}

func TestMemberTableIsWhole(t *testing.T) {
	for _, st := range []memberState{memberJoined, memberEnded, memberLeft, memberGone} {
		for _, ev := range []memberEvent{eventWatch, eventLeft, eventDone, eventExited} {
			if _, ok := memberSteps[st][ev]; !ok {
				t.Errorf("state %d says nothing of event %d", st, ev)
			}
		}
	}
}
