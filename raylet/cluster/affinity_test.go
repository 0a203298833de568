package cluster

import "testing"

func TestAffinity(t *testing.T) {
	to := func(soft bool) Demand {
		return cpus(2).with(func(d *Demand) { d.Strategy = Strategy{Kind: Affinity, Node: 3, Soft: soft} })
	}
	small := node(3, 1)
	small.Total[0].Amount = 1000
	for _, c := range []struct {
		name       string
		three      []Node
		hard, soft string
	}{
		{"it is free", []Node{node(3, 2)}, "there 3", "there 3"},
		{"however full and hot it is", []Node{node(3, 2, held(99), short)}, "there 3", "there 3"},
		{"it is busy", []Node{node(3, 1)}, "wait", "wait"},
		{"it drains", []Node{node(3, 10, draining)}, "infeasible", "here 1"},
		{"it is too small", []Node{small}, "infeasible", "here 1"},
		{"it is not there", nil, "infeasible", "here 1"},
	} {
		nodes := append([]Node{node(1, 10), node(2, 10)}, c.three...)
		placing{c.name + ", hard", nodes, to(false), c.hard}.run(t)
		placing{c.name + ", soft", nodes, to(true), c.soft}.run(t)
	}
}
