package cluster

import (
	"testing"

	"mobula/internal/ids"
	"mobula/raylet/sched"
	"mobula/wire"
)

// noCPUs makes a node that gives no CPUs, as that of a program which connects to a cluster does.
func noCPUs(id ids.Home, more ...any) Node {
	what := amounts(append([]any{sched.Memory, 1 << 30}, more...)...)
	return Node{ID: id, Version: 1, Total: what, Free: amounts(append([]any{sched.Memory, 1 << 30}, more...)...), Store: Store{Limit: 100}}
}

// A node without CPUs gets what names it, and what it was given other resources for; what asks for no CPU, or for memory alone, goes to others.
func TestANodeWithoutCPUsTakesWhatNamesIt(t *testing.T) {
	needs := func(of ...any) Demand { return Demand{Shape: Shape{Need: amounts(of...)}} }
	on := func(id ids.Home, soft bool) func(*Demand) {
		return func(d *Demand) { d.Strategy = Strategy{Kind: Affinity, Node: id, Soft: soft} }
	}
	for _, c := range []placing{
		{"nothing is asked for", []Node{noCPUs(1), node(2, 0)}, needs(), "there 2"},
		{"it has the arguments", []Node{noCPUs(1), node(2, 1)}, needs().with(func(d *Demand) { d.Args = []Held{{1, 1 << 30}} }), "there 2"},
		{"to be spread", []Node{node(1, 1), noCPUs(2)}, needs().with(spreadOut), "here 1"},
		{"memory is", []Node{noCPUs(1), node(2, 1, func(n *Node) {
			n.Total, n.Free = append(n.Total, wire.Resource{Name: sched.Memory, Amount: 1 << 30}), append(n.Free, wire.Resource{Name: sched.Memory, Amount: 1 << 30})
		})}, needs(sched.Memory, 1000), "there 2"},
		{"what it was given is", []Node{node(1, 1), noCPUs(2, "tpu", 1000)}, needs("tpu", 1000), "there 2"},
		{"it is named", []Node{node(1, 1), noCPUs(2)}, needs().with(on(2, false)), "there 2"},
		{"it is named, softly", []Node{node(1, 1), noCPUs(2)}, needs().with(on(2, true)), "there 2"},
		{"another is named that is gone", []Node{noCPUs(1), node(2, 1)}, needs().with(on(7, true)), "there 2"},
		{"all are so", []Node{noCPUs(1), noCPUs(2)}, needs(), "infeasible"},
	} {
		c.run(t)
	}
	err := infeasible(&View{Self: 1, Nodes: []Node{noCPUs(1), noCPUs(2)}}, &Shape{}, ids.Home.String)
	if want := "no resources: no node can run it: of 2 nodes 2 without CPUs, which take only what names them; ask less or start a node that has it"; err.Msg != want {
		t.Errorf("the error is %s", err.Msg)
	}
}
