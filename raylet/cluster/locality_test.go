package cluster

import (
	"testing"

	"mobula/wire"
)

func TestLocality(t *testing.T) {
	args := func(held ...Held) Demand { return cpus(1).with(func(d *Demand) { d.Args = held }) }
	idle := []Node{node(1, 10), node(2, 10), node(3, 10)}
	for _, c := range []placing{
		{"where the bytes are", idle, args(Held{2, 100 << 20}), "there 2"},
		{"where most of them are", idle, args(Held{1, 1 << 20}, Held{3, 100 << 20}), "there 3"},
		{"as many here", idle, args(Held{2, 100}, Held{1, 100}), "here 1"},
		{"as many on others", idle, args(Held{3, 100}, Held{2, 100}), "there 2"},
		{"the node is above half, another is not", []Node{node(1, 10), node(2, 3)}, args(Held{2, 100}), "here 1"},
		{"so it is, and the bytes are many", []Node{node(1, 10), node(2, 3)}, args(Held{2, 1 << 20}), "there 2"},
		{"the bytes are many, and the node is busy", []Node{node(1, 10), node(2, 0)}, args(Held{2, 1 << 20}), "here 1"},
		{"all are above half", []Node{node(1, 4), node(2, 4)}, args(Held{2, 100}), "there 2"},
		{"the node is busy, and the next has some", []Node{node(1, 10), node(2, 0), node(3, 10)}, args(Held{2, 100}, Held{3, 10}), "there 3"},
		{"the node is not known", idle, args(Held{9, 100}), "here 1"},
		{"rather in zone b, where none are", []Node{node(1, 10), node(2, 10), node(3, 10, label("zone=b"))}, args(Held{2, 1 << 30}).with(func(d *Demand) {
			d.Prefer = wire.Selector{{Key: "zone", Op: wire.LabelIn, Values: []string{"b"}}}
		}), "there 3"},
		{"all are hot", []Node{node(1, 10, held(90)), node(2, 10, held(90))}, args(Held{2, 1 << 30}), "there 2"},
		{"spread is asked for", idle, args(Held{3, 100}).with(spreadOut), "there 2"},
	} {
		c.run(t)
	}
}
