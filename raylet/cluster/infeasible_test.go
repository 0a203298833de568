package cluster

import (
	"errors"
	"testing"

	"mobula/internal/errs"
	"mobula/wire"
)

// Who asks what no node has is told what each of them lacks.
func TestInfeasible(t *testing.T) {
	nodes := []Node{node(1, 10), node(2, 10, gpu, draining), node(3, 10, gpu, label("zone=b")), node(4, 10, label("zone=a"))}
	inA := gpus(2).with(func(d *Demand) { d.Labels = wire.Selector{{Key: "zone", Op: wire.LabelIn, Values: []string{"a"}}} })
	for _, c := range []struct {
		d    Demand
		want string
	}{
		{gpus(2), "CPU 1, GPU 2: no node can run it: of 4 nodes 1 draining or dead; 3 with too little GPU, at most 1"},
		{inA, "CPU 1, GPU 2, on nodes where zone in (a): no node can run it: of 4 nodes 1 draining or dead; 2 without the labels; 1 with too little GPU, at most 0"},
		{cpus(1).with(func(d *Demand) { d.Strategy = Strategy{Kind: Affinity, Node: 2} }),
			"CPU 1, on node 2: no node can run it: of 4 nodes 3 not asked for; 1 draining or dead"},
	} {
		x := Place(&View{Self: 1, Nodes: nodes}, c.d, best(), nil)
		if x.Verdict != Infeasible || !errors.Is(x.Why, errs.ErrUnschedulable) {
			t.Fatalf("%v is placed %v", c.d.Shape, x)
		}
		if want := errs.ErrUnschedulable.Error() + ": " + c.want + "; ask less or start a node that has it"; x.Why.Error() != want {
			t.Errorf("it says\n%s\nwant\n%s", x.Why, want)
		}
	}
}

// What waits on nodes and can never run is counted by shape.
func TestLacks(t *testing.T) {
	two, four := gpus(2).Shape, gpus(4).Shape
	v := &View{Nodes: []Node{node(1, 0, waits(two), waits(cpus(1).Shape)), node(2, 0, waits(four), waits(two)), node(3, 10, gpu, draining)}}
	got := Lacks(v)
	if len(got) != 2 || !got[0].Shape.Equal(two) || got[0].N != 6 || !got[1].Shape.Equal(four) || got[1].N != 3 || got[0].Why == nil {
		t.Fatalf("%+v", got)
	}
	big := node(4, 10)
	big.Total = append(big.Total, two.Need[1])
	v.Report(big)
	if got = Lacks(v); len(got) != 1 || !got[0].Shape.Equal(four) {
		t.Errorf("a node with two GPUs has come: %+v", got)
	}
}
