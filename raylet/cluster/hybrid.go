package cluster

import (
	"math"
	"math/rand/v2"

	"mobula/internal/ids"
	"mobula/raylet/sched"
)

// hybrid is Ray's policy of that name. Up to a threshold of utilisation all nodes are as good as idle: work stays on the node that decides, which
// keeps others idle and its caches warm. Above it the least utilised is best. Where the node that decides is not among the best it draws from the top
// k of them, so that nodes which decide at the same time, by views of the same age, do not all choose the same.
//
// It gives the nodes that take one of n leases each before it is to be asked again: the own one as often as it is among the best, or k of the others, in a random order.
func hybrid(v *View, free set, d *Demand, n int, cfg Config, rnd *rand.Rand) (out []int32) {
	all, stays := rank(v, avoidGPU(v, free, &d.Shape, cfg), v.Self, cfg)
	if stays {
		i, _ := v.find(v.Self)
		least := score(&v.Nodes[i], cfg)
		for range v.Nodes[i].fits(&d.Shape, n, func(node *Node) bool { return score(node, cfg) <= least }) {
			out = append(out, int32(i))
		}
		return out
	}
	k := min(topK(v, cfg), len(all))
	nth(all, k-1)
	if k > 1 {
		rnd.Shuffle(k, func(i, j int) { all[i], all[j] = all[j], all[i] })
	}
	out = make([]int32, k)
	for i, r := range all[:k] {
		out[i] = r.at
	}
	return out
}

// avoidGPU leaves nodes with a GPU out for a shape that asks for none, while another is free.
func avoidGPU(v *View, free set, s *Shape, cfg Config) set {
	if !cfg.AvoidGPU || s.asks(sched.GPU) {
		return free
	}
	return free.rather(v, func(n *Node) bool { return amountOf(n.Total, sched.GPU) == 0 })
}

// rank scores the free nodes, and tells whether the preferred one is among the best.
func rank(v *View, free set, prefer ids.Home, cfg Config) (all []ranked, stays bool) {
	all = make([]ranked, len(free))
	least, its := math.Inf(1), math.Inf(1)
	for i, at := range free {
		n := &v.Nodes[at]
		all[i] = ranked{score(n, cfg), at}
		least = min(least, all[i].score)
		if n.ID == prefer {
			its = all[i].score
		}
	}
	return all, its <= least
}

// score is how much a node is utilised, zero below the threshold.
func score(n *Node, cfg Config) float64 {
	u := utilisation(n)
	if u < cfg.SpreadThreshold {
		return 0
	}
	return u
}

// utilisation is that of whichever is used most: CPU, memory or the object store's memory.
func utilisation(n *Node) float64 {
	most := 0.0
	for _, r := range n.Total {
		if (r.Name == sched.CPU || r.Name == sched.Memory) && r.Amount > 0 {
			most = max(most, 1-float64(amountOf(n.Free, r.Name))/float64(r.Amount))
		}
	}
	if n.Store.Limit > 0 {
		most = max(most, float64(n.Store.Held)/float64(n.Store.Limit))
	}
	return most
}

// topK is among how many nodes one is drawn.
func topK(v *View, cfg Config) int {
	alive := 0
	for i := range v.Nodes {
		if v.Nodes[i].State == Alive {
			alive++
		}
	}
	return max(cfg.TopK, int(cfg.TopKFraction*float64(alive)))
}

// ranked is a node by its place in the view, and its score. Of equal scores the first node comes first.
type ranked struct {
	score float64
	at    int32
}

func (a ranked) before(b ranked) bool { return a.score < b.score || a.score == b.score && a.at < b.at }

// nth gives the n-th in order, by quickselect: the order of the others is no matter.
func nth(all []ranked, n int) ranked {
	for {
		last := len(all) - 1
		all[last/2], all[last] = all[last], all[last/2]
		pivot, below := all[last], 0
		for i := range last {
			if all[i].before(pivot) {
				all[i], all[below] = all[below], all[i]
				below++
			}
		}
		all[below], all[last] = all[last], all[below]
		switch {
		case n == below:
			return pivot
		case n < below:
			all = all[:below]
		default:
			all, n = all[below+1:], n-below-1
		}
	}
}
