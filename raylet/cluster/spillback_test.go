package cluster

import (
	"testing"

	"mobula/internal/ids"
)

func TestSpillback(t *testing.T) {
	busy, free := []Node{node(1, 0), node(2, 0), node(3, 10)}, []Node{node(1, 1), node(2, 0), node(3, 10)}
	to := func(id ids.Home) Demand {
		return cpus(1).with(func(d *Demand) { d.Strategy = Strategy{Kind: Affinity, Node: id} })
	}
	for _, c := range []struct {
		name  string
		nodes []Node
		d     Demand
		tried []ids.Home
		hops  int
		want  string
	}{
		{"what can be taken is taken, though another is emptier", free, cpus(1), nil, 1, "here 1"},
		{"what cannot be is sent on", busy, cpus(1), nil, 1, "there 3"},
		{"once", busy, cpus(1), []ids.Home{2}, 1, "wait"},
		{"or as often as is said", busy, cpus(1), []ids.Home{2}, 2, "there 3"},
		{"and never", busy, cpus(1), nil, 0, "wait"},
		{"but taken after any number", free, cpus(1), []ids.Home{2, 3}, 1, "here 1"},
		{"not to a node that was tried", busy, cpus(1), []ids.Home{3}, 5, "wait"},
		{"nor to another than was asked for", busy, to(2), nil, 5, "wait"},
		{"it is not for this node", free, to(3), nil, 5, "there 3"},
		{"no node can run it", busy, cpus(11), nil, 5, "infeasible"},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg := best()
			cfg.MaxSpillbacks = c.hops
			r := Request{Demand: c.d, Tried: c.tried}
			if got := Spillback(&View{Self: 1, Nodes: c.nodes}, r, cfg, nil).String(); got != c.want {
				t.Errorf("answered %s, want %s", got, c.want)
			}
		})
	}
}

// However the views differ, a demand ends: it is taken, or waits after so many hops.
func TestSpillbackEnds(t *testing.T) {
	cfg := DefaultConfig()
	cfg.MaxSpillbacks = 4
	rnd := seeded(3)
	for range 200 {
		r := Request{Demand: cpus(1)}
		at := ids.Home(1)
		for {
			v := &View{Self: at}
			for id := range ids.Home(20) { // each sees others as it likes, and itself as full
				n := node(id, int64(rnd.IntN(11)))
				if id == at {
					n.Free[0].Amount = 0
				}
				v.Nodes = append(v.Nodes, n)
			}
			x := Spillback(v, r, cfg, rnd)
			if x.Verdict != There {
				break
			}
			r.Tried = append(r.Tried, at)
			at = x.Node
		}
		if len(r.Tried) > cfg.MaxSpillbacks {
			t.Fatalf("it went by %v", r.Tried)
		}
	}
}
