package cluster

import (
	"slices"
	"testing"

	"mobula/internal/ids"
)

func spreadOut(d *Demand) { d.Strategy.Kind = Spread }

func TestSpread(t *testing.T) {
	d := cpus(1).with(spreadOut)
	c := deciding(t, 1, best(), []Node{node(1, 10), node(2, 10), node(3, 10, draining), node(4, 0), node(7, 1), node(9, 10, held(95))})
	var got []ids.Home
	for range 5 {
		got = append(got, c.decide(d).node)
	}
	// 3 drains, 4 is not free, 9 is hot, and 7 has room for one.
	if want := []ids.Home{2, 7, 1, 2, 1}; !slices.Equal(got, want) {
		t.Errorf("placed on %v, want %v", got, want)
	}
	c.step(NodeUp{12})
	c.step(NodeReport{node(12, 10)})
	for _, want := range []ids.Home{2, 12} { // one that comes moves nobody's turn
		if x := c.decide(d); x.node != want {
			t.Errorf("placed on %v, want %v", x.node, want)
		}
	}
	if got := told(c.step(NodeGone{12})); got[1] != 1 { // the one that was chosen last
		t.Errorf("told are %v, want 1: it is the next after the one that has gone", got)
	}
}
