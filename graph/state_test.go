package graph

import (
	"fmt"
	"strings"
	"testing"
)

// The table as it is meant, one line a state: what is not here is rejected.
const wantTable = `
released: need>waiting fail>erred forget>forgotten adopt>memory
waiting: strand>no-worker hold>queued assign>processing recheck>waiting drop>released fail>erred
no-worker: strand>no-worker hold>queued assign>processing recheck>waiting drop>released fail>erred
queued: strand>no-worker hold>queued assign>processing recheck>waiting drop>released fail>erred
processing: recheck>waiting finish>memory drop>released fail>erred
memory: drop>released
erred: forget>forgotten
forgotten:
`

func TestTheTableIsAsItIsMeant(t *testing.T) {
	var got strings.Builder
	got.WriteString("\n")
	for s := range numStates {
		fmt.Fprintf(&got, "%v:", s)
		for m := range numMoves {
			if to := table[s][m]; to != illegal {
				fmt.Fprintf(&got, " %v>%v", m, to)
			}
		}
		got.WriteString("\n")
	}
	if got.String() != wantTable {
		t.Errorf("the table is\n%s", got.String())
	}
	if State(99).String() != "invalid" || move(99).String() != "invalid" {
		t.Error("what there is not has a name")
	}
}
