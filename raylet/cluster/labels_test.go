package cluster

import (
	"testing"

	"mobula/wire"
)

func TestLabels(t *testing.T) {
	zone := func(op wire.LabelOp, values ...string) wire.Selector {
		return wire.Selector{{Key: "zone", Op: op, Values: values}}
	}
	hard := func(s wire.Selector) Demand { return cpus(1).with(func(d *Demand) { d.Labels = s }) }
	soft := func(s wire.Selector) Demand { return cpus(1).with(func(d *Demand) { d.Prefer = s }) }
	nodes := []Node{node(1, 10), node(2, 10, label("zone=a")), node(3, 10, label("zone=b")), node(4, 0, label("zone=c"))}
	for _, c := range []placing{
		{"in", nodes, hard(zone(wire.LabelIn, "b", "c")), "there 3"},
		{"in, and the one node is busy", nodes, hard(zone(wire.LabelIn, "c")), "wait"},
		{"in, and there is none", nodes, hard(zone(wire.LabelIn, "d")), "infeasible"},
		{"not in", nodes, hard(append(zone(wire.LabelNotIn, "a"), zone(wire.LabelExists)...)), "there 3"},
		{"not in, of a node without the label", nodes, hard(zone(wire.LabelNotIn, "a")), "here 1"},
		{"exists", nodes, hard(zone(wire.LabelExists)), "there 2"},
		{"absent", append([]Node{node(1, 10, label("zone=d"))}, nodes[1:]...), hard(zone(wire.LabelAbsent)), "infeasible"},
		{"rather in", nodes, soft(zone(wire.LabelIn, "b")), "there 3"},
		{"rather in, and the one node is busy", nodes, soft(zone(wire.LabelIn, "c")), "here 1"},
		{"rather in, and there is none", nodes, soft(zone(wire.LabelIn, "d")), "here 1"},
		{"rather in, of those where it is", nodes, hard(zone(wire.LabelExists)).with(func(d *Demand) { d.Prefer = zone(wire.LabelNotIn, "a") }), "there 3"},
		{"rather in, be it hot", []Node{node(1, 10), node(2, 10, label("zone=a"), held(95))}, soft(zone(wire.LabelIn, "a")), "there 2"},
	} {
		c.run(t)
	}
}
