package actor

import (
	"fmt"
	"strings"
	"testing"
)

const want = `
NONE: create>PENDING_CREATION claim>PENDING_NAME locate>LOCATING
PENDING_NAME: claimed>PENDING_CREATION existing>ALIAS die>DEAD
PENDING_CREATION: up>ALIVE restart>RESTARTING die>DEAD
ALIVE: restart>RESTARTING die>DEAD stop>STOPPING
RESTARTING: up>ALIVE restart>RESTARTING die>DEAD
DEAD:
ALIAS:
LOCATING: up>ALIVE restart>RESTARTING die>DEAD
STOPPING: die>DEAD
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
	if _, ok := Next(State(99), Die); ok {
		t.Error("a state that there is not moves")
	}
	if _, ok := Next(Alive, Event(99)); ok {
		t.Error("an event that there is not moves")
	}
}

// states lists every state.
func states() []State {
	return []State{None, Claiming, Creating, Alive, Restarting, Dead, Alias, Locating, Stopping}
}

// events lists every event.
func events() []Event {
	return []Event{Create, Claim, Claimed, Existing, Up, Restart, Die, Locate, Stop}
}
