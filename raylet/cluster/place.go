package cluster

import (
	"math/rand/v2"
	"slices"
)

// place places up to n leases for a demand on nodes that are free, and takes each off the view. took is told the node of each lease, by its place in the view;
// left is how many found no node free. The set is used up.
//
// The policies narrow the nodes: to the one that the strategy names, to those with the labels that are preferred, to those that are not hot. Of these first the ones
// take leases that have bytes of the arguments, and then those that the strategy gives: the nodes are looked at once a round, in which each of the best takes one.
func place(v *View, d *Demand, n int, free set, cfg Config, rnd *rand.Rand, took func(at int32)) (left int) {
	take := func(of []int32) {
		for _, at := range of[:min(n, len(of))] {
			v.Nodes[at].take(d.Need, 1)
			n--
			took(at)
		}
	}
	spreads := d.Strategy.Kind == Spread
	free = named(v, free, &d.Shape)
	for round := 0; n > 0; round++ {
		if round > 0 {
			free = slices.DeleteFunc(free, func(at int32) bool { return !v.Nodes[at].free(&d.Shape) })
		}
		if len(free) == 0 {
			break
		}
		best := cool(v, preferred(v, slices.Clone(free), &d.Shape), cfg)
		switch {
		case spreads:
			of := spread(v, best)
			v.Last = v.Nodes[of[min(n, len(of))-1]].ID
			take(of)
		case round == 0 && len(d.Args) > 0:
			take(locality(v, best, d, n, cfg))
		default:
			take(hybrid(v, best, d, n, cfg, rnd))
		}
	}
	return n
}
