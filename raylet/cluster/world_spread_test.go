package cluster

import (
	"math/rand/v2"
	"testing"
	"time"

	"mobula/internal/ids"
	"mobula/internal/testkit"
	"mobula/raylet/sched"
	"mobula/wire"
)

// Tasks that are to be spread and are submitted together, while all nodes have room for all of them, run on every node: however late the leases of one come.
func TestSpreadTasksRunOnEveryNode(t *testing.T) {
	for _, seed := range testkit.Seeds(t, 300) {
		r := rand.New(rand.NewPCG(seed, 11))
		w := newWorld(t, func(n int, _ string) int { return r.IntN(n) })
		for id := range ids.Home(3) {
			w.begin(id+1, amounts(sched.CPU, 6000), "", 0)
		}
		w.settle()
		for _, m := range w.members() {
			w.gossip(m, true)
		}
		w.settle()
		o := w.newOwner(w.nodes[1], 1, &wire.TaskOptions{Func: "spread", Spread: true})
		k := o.classes[0]
		for left := 6; left > 0; {
			n := 1 + r.IntN(left)
			o.submit(k, n)
			left -= n
			for range r.IntN(3) {
				w.deliver()
			}
		}
		for round := 0; k.ready > 0; round++ {
			if round > 1000 {
				w.failf("seed %d: %d tasks wait", seed, k.ready)
			}
			if r.IntN(4) == 0 {
				w.pass(time.Duration(r.IntN(20)) * time.Millisecond)
			}
			w.deliver()
		}
		ran := map[ids.Home]int{}
		for id, l := range o.leases {
			ran[id.Home()] += bit(l.busy)
		}
		if ran[1] == 0 || ran[2] == 0 || ran[3] == 0 {
			w.failf("seed %d: so many run on each node: %v", seed, ran)
		}
		w.drain()
	}
}
