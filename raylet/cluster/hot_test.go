package cluster

import "testing"

func TestHotNodesAreAvoided(t *testing.T) {
	for _, c := range []placing{
		{"its store is at 90 %", []Node{node(1, 10, held(90)), node(2, 1)}, cpus(1), "there 2"},
		{"it has the arguments", []Node{node(1, 3), node(2, 10, held(90))}, cpus(1).with(func(d *Demand) { d.Args = []Held{{2, 1 << 30}} }), "here 1"},
		{"it is short of memory", []Node{node(1, 10, short), node(2, 1)}, cpus(1), "there 2"},
		{"all are hot: the least utilised", []Node{node(1, 10, held(90)), node(2, 2, short)}, cpus(1), "there 2"},
		{"the others are busy", []Node{node(1, 10, held(90)), node(2, 0)}, cpus(1), "here 1"},
		{"rather a node with a GPU than a hot one", []Node{node(1, 10, short), node(2, 10, gpu)}, cpus(1), "there 2"},
	} {
		c.run(t)
	}
}
