package cluster

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
)

// placeAll places up to n leases for a demand on nodes that are free, and takes each off the view. Each goes where Place would send it, but the nodes are
// looked at once a round, in which each of the best takes one lease: where Place draws one of them it deals to all in a random order. took is told the
// node of each lease, by its place in the view; left is how many found no node free. The set is used up, and so is what Demand.Args has.
func placeAll(v *View, d *Demand, n int, free set, cfg Config, rnd *rand.Rand, took func(at int32)) (left int) {
	take := func(at int32) {
		v.Nodes[at].take(d.Need, 1)
		n--
		took(at)
	}
	if free = named(v, free, &d.Shape); d.Strategy.Kind != Spread {
		placeByArgs(v, d, n, free, cfg, take)
	}
	for n > 0 {
		free = slices.DeleteFunc(free, func(at int32) bool { return !v.Nodes[at].free(&d.Shape) })
		if len(free) == 0 {
			break
		}
		best := cool(v, preferred(v, slices.Clone(free), &d.Shape), cfg)
		if d.Strategy.Kind == Spread {
			for _, at := range fromTurn(v, best)[:min(n, len(best))] {
				v.Last = v.Nodes[at].ID
				take(at)
			}
			continue
		}
		all, stays := rank(v, avoidGPU(v, best, &d.Shape, cfg), v.Self, cfg)
		if stays {
			i, _ := v.find(v.Self)
			least := score(&v.Nodes[i], cfg)
			for n > 0 && v.Nodes[i].free(&d.Shape) && score(&v.Nodes[i], cfg) <= least {
				take(int32(i))
			}
			continue
		}
		k := min(max(topK(v, cfg), 1), len(all))
		nth(all, k-1)
		if k > 1 {
			rnd.Shuffle(k, func(i, j int) { all[i], all[j] = all[j], all[i] })
		}
		for _, r := range all[:min(n, k)] {
			take(r.at)
		}
	}
	return n
}

// placeByArgs gives each node that has bytes of the arguments its share of n leases, as long as it is free and, unless they are many, not utilised above the
// threshold.
func placeByArgs(v *View, d *Demand, n int, free set, cfg Config, take func(at int32)) {
	total := 0.0
	for _, h := range d.Args {
		total += float64(h.Bytes)
	}
	if total == 0 {
		return
	}
	heavy := total >= float64(cfg.HeavyArgs)*float64(n)
	v.byBytes(d.Args)
	for left := n; left > 0 && len(d.Args) > 0; d.Args = d.Args[1:] {
		h := d.Args[0]
		if !free.has(v, h.Node) {
			continue
		}
		i, _ := v.find(h.Node)
		node := &v.Nodes[i]
		share := min(left, int(math.Ceil(float64(h.Bytes)/total*float64(n))))
		for ; share > 0 && node.free(&d.Shape) && (heavy || score(node, cfg) == 0) && !hot(node, cfg); share-- {
			take(int32(i))
			left--
		}
	}
}

// byBytes orders nodes by how many bytes they have; of equals the one that decides comes first.
func (v *View) byBytes(args []Held) {
	away := func(h Held) int { return bit(h.Node != v.Self) }
	slices.SortFunc(args, func(a, b Held) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(away(a), away(b)), cmp.Compare(a.Node, b.Node))
	})
}

func bit(b bool) int {
	if b {
		return 1
	}
	return 0
}

// fromTurn orders nodes from the one whose turn it is by Spread.
func fromTurn(v *View, free set) set {
	i := slices.IndexFunc(free, func(at int32) bool { return v.Nodes[at].ID > v.Last })
	if i <= 0 {
		return free
	}
	return append(slices.Clone(free[i:]), free[:i]...)
}
