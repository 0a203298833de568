package cluster

import "testing"

func TestLabels(t *testing.T) {
	zone := func(op Op, values ...string) Selector { return Selector{{Key: "zone", Op: op, Values: values}} }
	hard := func(s Selector) Demand { return cpus(1).with(func(d *Demand) { d.Labels = s }) }
	soft := func(s Selector) Demand { return cpus(1).with(func(d *Demand) { d.Prefer = s }) }
	nodes := []Node{node(1, 10), node(2, 10, label("zone=a")), node(3, 10, label("zone=b")), node(4, 0, label("zone=c"))}
	for _, c := range []placing{
		{"in", nodes, hard(zone(In, "b", "c")), "there 3"},
		{"in, and the one node is busy", nodes, hard(zone(In, "c")), "wait"},
		{"in, and there is none", nodes, hard(zone(In, "d")), "infeasible"},
		{"not in", nodes, hard(append(zone(NotIn, "a"), zone(Exists)...)), "there 3"},
		{"not in, of a node without the label", nodes, hard(zone(NotIn, "a")), "here 1"},
		{"exists", nodes, hard(zone(Exists)), "there 2"},
		{"absent", nodes[1:], hard(zone(Absent)), "infeasible"},
		{"rather in", nodes, soft(zone(In, "b")), "there 3"},
		{"rather in, and the one node is busy", nodes, soft(zone(In, "c")), "here 1"},
		{"rather in, and there is none", nodes, soft(zone(In, "d")), "here 1"},
		{"rather in, of those where it is", nodes, hard(zone(Exists)).with(func(d *Demand) { d.Prefer = zone(NotIn, "a") }), "there 3"},
		{"rather in, be it hot", []Node{node(1, 10), node(2, 10, label("zone=a"), held(95))}, soft(zone(In, "a")), "there 2"},
	} {
		c.run(t)
	}
}
