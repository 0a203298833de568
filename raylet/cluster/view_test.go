package cluster

import (
	"testing"

	"mobula/internal/ids"
	"mobula/raylet/sched"
)

// Reports may overtake each other: the one with the highest version counts.
func TestAnOldReportIsIgnored(t *testing.T) {
	v := &View{}
	report := func(id ids.Home, version uint64, free int64) bool {
		n := node(id, free)
		n.Version = version
		return v.Report(n)
	}
	if !report(5, 2, 9) || !report(3, 1, 7) || report(5, 1, 1) || report(5, 2, 1) {
		t.Error("a report is taken that is none, or the other way round")
	}
	if len(v.Nodes) != 2 || v.Nodes[0].ID != 3 || v.Nodes[1].Free[0].Amount != 9000 {
		t.Fatalf("%+v", v.Nodes)
	}
}

// What was placed on a node is off what its reports say, until it is wanted no more.
func TestWhatWasPlacedCounts(t *testing.T) {
	n := node(2, 2)
	c := deciding(t, 1, best(), []Node{node(1, 0), n})
	for _, want := range []string{"there 2", "there 2", "wait"} {
		if x := c.decide(cpus(1)); x.String() != want {
			t.Fatalf("placed %v, want %s", x, want)
		}
	}
	n.Version++
	if out := c.step(NodeReport{n}); len(told(out)) != 0 {
		t.Errorf("it reports that nothing was granted yet, and is asked for more: %v", told(out))
	}
	c.step(FromOwner{c.key(1).Job, sched.Want{Key: c.key(1)}})
	n.Version++
	if out := c.step(NodeReport{n}); told(out)[2] != 1 {
		t.Errorf("there is room again, and told are %v", told(out))
	}
	if n.Free[0].Amount != 2000 {
		t.Error("the report itself was changed")
	}
}
