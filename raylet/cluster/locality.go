package cluster

import (
	"cmp"
	"math"
	"slices"
)

// locality gives the nodes that take leases because they have bytes of the arguments, each as often as is its share of n: there the least has to be moved. A node
// takes as many as it is free for. Unless the bytes are many (HeavyArgs), it takes no more once another node is better by its utilisation (hybrid).
func locality(v *View, free set, d *Demand, n int, cfg Config) (out []int32) {
	args := slices.Clone(d.Args)
	v.byBytes(args)
	total, least := 0.0, math.Inf(1)
	for _, h := range args {
		total += float64(h.Bytes)
	}
	for _, at := range free {
		least = min(least, score(&v.Nodes[at], cfg))
	}
	heavy := total >= float64(cfg.HeavyArgs)*float64(n)
	for _, h := range args {
		i, known := v.find(h.Node)
		if !known || h.Bytes == 0 || !free.has(v, h.Node) {
			continue
		}
		share := min(n-len(out), int(math.Ceil(float64(h.Bytes)/total*float64(n))))
		for range v.Nodes[i].fits(&d.Shape, share, func(node *Node) bool { return heavy || score(node, cfg) <= least }) {
			out = append(out, int32(i))
		}
	}
	return out
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
