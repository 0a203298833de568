package node

import (
	"slices"
	"testing"
)

// Whatever comes, and however often, each thing is told once and in its order.
func TestMemberTellsEachThingOnce(t *testing.T) {
	for _, evs := range [][]memberEvent{
		{eventLeft, eventExited},
		{eventExited, eventLeft, eventExited},
		{eventLeft, eventLeft, eventExited, eventExited, eventLeft},
		{eventDone, eventLeft, eventDone, eventExited},
		{eventLeft, eventExited, eventDone},
	} {
		core := &memberCore{}
		var did []memberEffect
		for _, ev := range evs {
			did = append(did, core.Step(0, ev)...)
		}
		if want := []memberEffect{tellPeers, awaitPins, dropPins, stopMember}; !slices.Equal(did, want) {
			t.Errorf("%v: did %v, want %v", evs, did, want)
		}
	}
}

func TestMemberTableIsWhole(t *testing.T) {
	for _, st := range []memberState{memberJoined, memberLeft, memberGone} {
		for _, ev := range []memberEvent{eventLeft, eventDone, eventExited} {
			if _, ok := memberSteps[st][ev]; !ok {
				t.Errorf("state %d says nothing of event %d", st, ev)
			}
		}
	}
}
