package lease

import (
	"fmt"
	"strings"
	"testing"
)

const want = `
NONE: grant>ACTIVE
ACTIVE: block>BLOCKED close>CLOSING up>ACTOR lose>LOST end>ENDED
BLOCKED: unblock>RESUMING close>CLOSING lose>LOST end>ENDED
RESUMING: resume>ACTIVE close>CLOSING lose>LOST end>ENDED
CLOSING: block>BLOCKED up>ACTOR lose>LOST end>ENDED
ACTOR: lose>LOST end>ENDED
LOST: end>ENDED
ENDED:
`

func TestEveryPairIsLegalOrRejectedAsInTheTable(t *testing.T) {
	var got strings.Builder
	got.WriteString("\n")
	for _, s := range states() {
		fmt.Fprintf(&got, "%v:", s)
		for _, e := range events() {
			if to, ok := Next(s, e); ok {
				fmt.Fprintf(&got, " %v>%v", e, to)
			}
		}
		got.WriteString("\n")
	}
	if got.String() != want {
		t.Errorf("the table is\n%s", got.String())
	}
	if _, ok := Next(State(99), End); ok {
		t.Error("a state that there is not moves")
	}
	if _, ok := Next(Active, Event(99)); ok {
		t.Error("an event that there is not moves")
	}
}

// states lists every state.
func states() []State {
	return []State{None, Active, Blocked, Resuming, Closing, Actor, Lost, Ended}
}

// events lists every event.
func events() []Event {
	return []Event{Grant, Block, Unblock, Resume, Close, Up, Lose, End}
}
