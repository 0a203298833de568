package cluster

import (
	"slices"
	"testing"

	"mobula/internal/ids"
)

func spreadOut(d *Demand) { d.Strategy.Kind = Spread }

func TestSpread(t *testing.T) {
	d := cpus(1).with(spreadOut)
	v := &View{Self: 1, Last: 1, Nodes: []Node{node(1, 10), node(2, 10), node(3, 10, draining), node(4, 0), node(7, 1), node(9, 10, held(95))}}
	var got []ids.Home
	for range 5 {
		x := Place(v, d, best(), nil)
		got = append(got, x.Node)
		v.Take(x.Node, d.Shape)
	}
	// 3 drains, 4 is not free, 9 is hot, and 7 has room for one.
	if want := []ids.Home{2, 7, 1, 2, 1}; !slices.Equal(got, want) {
		t.Errorf("placed on %v, want %v", got, want)
	}
	v.Nodes = slices.DeleteFunc(v.Nodes, func(n Node) bool { return n.ID == 1 }) // the one that was chosen last has gone
	if x := Place(v, d, best(), nil); x.Node != 2 {
		t.Errorf("placed on %v, want 2", x.Node)
	}
}
