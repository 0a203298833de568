package node

import (
	"testing"

	"mobula/internal/ids"
	"mobula/raylet"
	"mobula/raylet/cluster"
	"mobula/raylet/pool"
	"mobula/raylet/sched"
	"mobula/wire"
)

// A core that begins anew gets the last report of each node that is not gone, which no node repeats soon.
func TestTheLastReportsOutliveTheCore(t *testing.T) {
	c := &chooser{}
	report := func(id ids.Home, version uint64, cpus int64) cluster.NodeReport {
		return cluster.NodeReport{Node: cluster.Node{ID: id, Version: version, Total: []wire.Resource{{Name: sched.CPU, Amount: cpus * sched.OneCPU}}, Store: cluster.Store{Limit: 10}}}
	}
	for _, ev := range []cluster.Event{report(2, 1, 4), report(1, 1, 2), report(3, 1, 8), report(2, 2, 0), cluster.NodeUp{Node: 3}, cluster.NodeGone{Node: 3}} {
		c.known.note(ev)
	}
	got := c.known.reports()
	if len(got) != 2 || got[0].(cluster.NodeReport).Node.ID != 1 || got[1].(cluster.NodeReport).Node.Version != 2 {
		t.Errorf("it gets %v", got)
	}
	if cpus, store := c.capacity(); cpus != 2 || store != 10 {
		t.Errorf("there are %v CPUs and %d bytes of stores, want those of node 1 alone, since node 2 runs no tasks", cpus, store)
	}
}

// What happens in the scheduler has a node look whether it has something to report; a look does not.
func TestTheSchedulersEventsHaveANodeReport(t *testing.T) {
	core, _, err := raylet.New(raylet.Config{Pool: pool.Config{CPUs: 1, NewToken: newToken}})
	if err != nil {
		t.Fatal(err)
	}
	woken := 0
	w := waking{core, func() { woken++ }}
	w.Step(1, raylet.Inspect{Do: func(*raylet.Core) {}})
	if woken != 0 {
		t.Error("a look had it look again")
	}
	if w.Step(2, sched.OwnerRestarted{Job: 1}); woken != 1 {
		t.Errorf("an event has woken it %d times", woken)
	}
}
