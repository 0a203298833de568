package cluster

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"mobula/internal/ids"
	"mobula/raylet/sched"
	"mobula/wire"
)

// node makes a node of 10 CPUs of which so many are free; more says what else it is.
func node(id ids.Home, free int64, more ...func(*Node)) Node {
	n := Node{ID: id, Version: 1, Total: []wire.Resource{{Name: sched.CPU, Amount: 10_000}}, Free: []wire.Resource{{Name: sched.CPU, Amount: free * 1000}},
		Store: Store{Limit: 100}}
	for _, f := range more {
		f(&n)
	}
	return n
}

func draining(n *Node) { n.State = Draining }
func dead(n *Node)     { n.State = Dead }
func short(n *Node)    { n.Short = true }

func gpu(n *Node) {
	n.Total = append(n.Total, wire.Resource{Name: sched.GPU, Amount: 1000})
	n.Free = append(n.Free, wire.Resource{Name: sched.GPU, Amount: 1000})
}

// label is "zone=a".
func label(text string) func(*Node) {
	key, value, _ := strings.Cut(text, "=")
	return func(n *Node) { n.Labels = map[string]string{key: value} }
}

func held(percent uint64) func(*Node) { return func(n *Node) { n.Store.Held = percent } }

func waits(s Shape) func(*Node) {
	return func(n *Node) { n.Backlog = append(n.Backlog, Backlog{s, 3}) }
}

// cpus is a demand of so many CPUs.
func cpus(n int64) Demand {
	return Demand{Shape: Shape{Need: []wire.Resource{{Name: sched.CPU, Amount: n * 1000}}}}
}

func gpus(n int64) Demand {
	d := cpus(1)
	d.Need = append(d.Need, wire.Resource{Name: sched.GPU, Amount: n * 1000})
	return d
}

func (d Demand) with(f func(*Demand)) Demand {
	f(&d)
	return d
}

// best is a configuration that draws nothing: always the best node.
func best() Config {
	cfg := DefaultConfig()
	cfg.TopKFraction = 0
	return cfg
}

func (d Decision) String() string {
	if d.Verdict == Here || d.Verdict == There {
		return fmt.Sprintf("%v %v", d.Verdict, d.Node)
	}
	return d.Verdict.String()
}

type placing struct {
	name  string
	nodes []Node
	d     Demand
	want  string
}

// run runs a table; node 1 decides.
func (c placing) run(t *testing.T) {
	t.Run(c.name, func(t *testing.T) {
		if err := c.d.Validate(); err != nil {
			t.Fatal(err)
		}
		v := &View{Self: 1, Nodes: c.nodes, Last: 1}
		if got := Place(v, c.d, best(), nil).String(); got != c.want {
			t.Errorf("%v is placed %s, want %s", c.d.Shape, got, c.want)
		}
	})
}

func seeded(n uint64) *rand.Rand { return rand.New(rand.NewPCG(n, 1)) }

// drawn is how often each node is chosen.
func drawn(v *View, d Demand, cfg Config, times int) map[ids.Home]int {
	out := make(map[ids.Home]int)
	rnd := seeded(7)
	for range times {
		out[Place(v, d, cfg, rnd).Node]++
	}
	return out
}

func keys(m map[ids.Home]int) []ids.Home {
	var out []ids.Home
	for id := range m {
		out = append(out, id)
	}
	slices.Sort(out)
	return out
}
