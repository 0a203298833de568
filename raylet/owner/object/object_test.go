package object

import (
	"fmt"
	"strings"
	"testing"
)

const want = `
PENDING: set-inline>INLINE set-stored>STORED set-error>ERROR drop>FREED
INLINE: pack>STORED drop>FREED
STORED: set-error>ERROR lose>PENDING drop>FREED
ERROR: drop>FREED
FREED: remake>PENDING
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
	if _, ok := Next(State(99), Drop); ok {
		t.Error("a state that there is not moves")
	}
	if _, ok := Next(Inline, Event(99)); ok {
		t.Error("an event that there is not moves")
	}
}

// One attempt is accepted: what has a value or an error is not set again.
func TestResolvedIsNotSetAgain(t *testing.T) {
	for _, s := range states() {
		for _, e := range []Event{SetInline, SetStored} {
			if _, ok := Next(s, e); ok != (s == Pending) {
				t.Errorf("%v %v: %v", s, e, ok)
			}
		}
	}
}

// states lists every state.
func states() []State { return []State{Pending, Inline, Stored, Failed, Freed} }

// events lists every event.
func events() []Event {
	return []Event{SetInline, SetStored, SetError, Pack, Lose, Drop, Remake}
}
