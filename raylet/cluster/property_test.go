package cluster

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"mobula/internal/ids"
	"mobula/internal/testkit"
	"mobula/raylet/sched"
	"mobula/wire"
)

var (
	zones     = []string{"", "a", "b"}
	resources = []string{sched.CPU, sched.GPU, sched.Memory, "tpu"}
)

func drawResources(t *rapid.T, what string, most int64) []wire.Resource {
	var out []wire.Resource
	for _, name := range resources {
		if n := rapid.Int64Range(0, most).Draw(t, what+" "+name); n > 0 {
			out = append(out, wire.Resource{Name: name, Amount: n})
		}
	}
	slices.SortFunc(out, func(a, b wire.Resource) int { // as bytes
		if a.Name < b.Name {
			return -1
		}
		return 1
	})
	return out
}

func drawSelector(t *rapid.T, what string) wire.Selector {
	var s wire.Selector
	for range rapid.IntRange(0, 2).Draw(t, what) {
		m := wire.LabelMatch{Key: "zone", Op: wire.LabelOp(rapid.IntRange(0, int(wire.LabelAbsent)).Draw(t, "op"))}
		if m.Op <= wire.LabelNotIn {
			m.Values = []string{rapid.SampledFrom(zones[1:]).Draw(t, "value")}
		}
		s = append(s, m)
	}
	return s
}

func drawShape(t *rapid.T) Shape {
	s := Shape{Need: drawResources(t, "need", 4), Labels: drawSelector(t, "labels"), Prefer: drawSelector(t, "prefer")}
	s.Strategy.Kind = Kind(rapid.IntRange(0, int(Affinity)).Draw(t, "strategy"))
	if s.Strategy.Kind == Affinity {
		s.Strategy.Node, s.Strategy.Soft = ids.Home(rapid.IntRange(0, 12).Draw(t, "to")), rapid.Bool().Draw(t, "soft")
	}
	return s
}

func drawView(t *rapid.T, s Shape) *View {
	v := &View{Self: ids.Home(rapid.IntRange(0, 12).Draw(t, "self"))}
	of := []ids.Home{v.Self, (v.Self + 1) % 13} // it knows itself, and is not alone
	for range rapid.IntRange(0, 10).Draw(t, "nodes") {
		of = append(of, ids.Home(rapid.IntRange(0, 12).Draw(t, "id")))
	}
	for _, id := range of {
		n := Node{ID: id, Version: 1, Total: drawResources(t, "total", 8), Store: Store{Limit: 100}}
		n.State = State(rapid.IntRange(0, int(Dead)).Draw(t, "state"))
		for _, r := range n.Total { // more may be taken than there is, as actors do that wait for no CPU
			n.Free = append(n.Free, wire.Resource{Name: r.Name, Amount: rapid.Int64Range(-2, r.Amount).Draw(t, "free")})
		}
		if zone := rapid.SampledFrom(zones).Draw(t, "zone"); zone != "" {
			n.Labels = map[string]string{"zone": zone}
		}
		n.Store.Held, n.Short = rapid.Uint64Range(0, 100).Draw(t, "held"), rapid.Bool().Draw(t, "short")
		if rapid.IntRange(0, 3).Draw(t, "waits") == 0 {
			n.Backlog = []Backlog{{s, 1}}
		}
		v.Report(n)
	}
	return v
}

// Whatever the view and the demand: it goes only to a node that takes work, has the resources free and the labels; it waits only where such a node is
// not there and one could become it; it is infeasible only where none could. With one best node the decision is the same each time, and of nodes that are
// alike the first is chosen.
func TestPlacesHoldWhatIsAsked(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		s := drawShape(t)
		if err := s.Validate(); err != nil {
			t.Fatal(err)
		}
		v, d := drawView(t, s), Demand{Shape: s}
		for range rapid.IntRange(0, 3).Draw(t, "args") {
			d.Args = append(d.Args, Held{ids.Home(rapid.IntRange(0, 12).Draw(t, "at")), rapid.Uint64Range(0, 3).Draw(t, "bytes")})
		}
		var able, free []ids.Home
		for _, n := range v.Nodes {
			if n.State != Alive || !s.Labels.Matches(n.Labels) || s.Strategy.Kind == Affinity && !s.Strategy.Soft && n.ID != s.Strategy.Node {
				continue
			}
			enough := func(have []wire.Resource) bool {
				return !slices.ContainsFunc(s.Need, func(x wire.Resource) bool { return amountOf(have, x.Name) < x.Amount })
			}
			asks := func(name string) bool {
				return slices.ContainsFunc(s.Need, func(x wire.Resource) bool { return x.Name == name })
			}
			if amountOf(n.Total, sched.CPU) == 0 && !asks(sched.GPU) && !asks("tpu") && (s.Strategy.Kind != Affinity || s.Strategy.Node != n.ID) {
				continue // it gives no CPUs
			}
			if enough(n.Total) {
				able = append(able, n.ID)
				if enough(n.Free) && len(n.Backlog) == 0 {
					free = append(free, n.ID)
				}
			}
		}
		x := deciding(t, v.Self, DefaultConfig(), v.Nodes).decide(d)
		switch {
		case x.refuse != nil:
			if len(able) > 0 {
				t.Fatalf("%v is infeasible: %v could run it", s, able)
			}
		case x.waits:
			target := s.Strategy.Kind == Affinity && slices.Contains(able, s.Strategy.Node) && !slices.Contains(free, s.Strategy.Node)
			if len(able) == 0 || len(free) > 0 && !target {
				t.Fatalf("%v waits: %v could run it, %v can now", s, able, free)
			}
		default:
			if !slices.Contains(free, x.node) {
				t.Fatalf("%v is placed %v, of %v that are free", s, x, free)
			}
			if s.Strategy.Kind == Affinity && slices.Contains(able, s.Strategy.Node) && x.node != s.Strategy.Node {
				t.Fatalf("%v is placed %v", s, x)
			}
			if j, _ := v.find(x.node); s.Strategy.Kind != Affinity && hot(&v.Nodes[j], DefaultConfig()) {
				for _, n := range v.Nodes {
					if slices.Contains(free, n.ID) && !hot(&n, DefaultConfig()) && len(s.Prefer) == 0 {
						t.Fatalf("%v is placed %v, which is hot, and %v is not", s, x, n.ID)
					}
				}
			}
		}
		once, again := deciding(t, v.Self, best(), v.Nodes).decide(d), deciding(t, v.Self, best(), v.Nodes).decide(d)
		if once.String() != again.String() {
			t.Fatalf("%v once, and then %v", once, again)
		}
		if s.Strategy.Kind == Hybrid && len(d.Args) == 0 && once.refuse == nil && !once.waits && !once.self {
			j, _ := v.find(once.node)
			for _, n := range v.Nodes[:j] {
				if slices.Contains(free, n.ID) && alike(n, v.Nodes[j]) {
					t.Fatalf("node %v is chosen, and %v before it is alike", once.node, n.ID)
				}
			}
		}
	})
}

func alike(a, b Node) bool {
	return slices.Equal(a.Total, b.Total) && slices.Equal(a.Free, b.Free) && a.Labels["zone"] == b.Labels["zone"] && a.Store == b.Store && a.Short == b.Short
}
