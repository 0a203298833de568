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
		x := deciding(t, 1, best(), nodes).decide(c.d)
		if x.refuse == nil || !errors.Is(x.refuse, errs.ErrUnschedulable) {
			t.Fatalf("%v is placed %v", c.d.Shape, x)
		}
		if want := errs.ErrUnschedulable.Error() + ": " + c.want + "; ask less or start a node that has it"; x.refuse.Error() != want {
			t.Errorf("it says\n%s\nwant\n%s", x.refuse, want)
		}
	}
}
