package cluster

import (
	"testing"

	"mobula/internal/ids"
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

// What was placed on a node counts until it reports again.
func TestTake(t *testing.T) {
	n := node(2, 2)
	v := &View{Self: 1, Nodes: []Node{node(1, 0), n}}
	for _, want := range []string{"there 2", "there 2", "wait"} {
		x := Place(v, cpus(1), best(), nil)
		if x.String() != want {
			t.Fatalf("placed %v, want %s", x, want)
		}
		if x.Verdict == There {
			v.Take(x.Node, cpus(1).Shape)
		}
	}
	if n.Free[0].Amount != 2000 {
		t.Error("the report itself was changed")
	}
	v.Take(9, cpus(1).Shape) // of a node that is not known any more
	n.Version++
	if !v.Report(n) || Place(v, cpus(1), best(), nil).String() != "there 2" {
		t.Error("the new report does not count")
	}
}
