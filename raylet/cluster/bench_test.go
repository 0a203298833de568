package cluster

import (
	"fmt"
	"testing"

	"mobula/internal/ids"
	"mobula/wire"
)

// One decision over ten thousand nodes.
func BenchmarkPlace(b *testing.B) {
	inZone := wire.Selector{{Key: "zone", Op: wire.LabelIn, Values: []string{"a"}}}
	for _, c := range []struct {
		name string
		free func(i int) int64
		d    Demand
	}{
		{"idle", func(int) int64 { return 10 }, cpus(1)},
		{"full", func(i int) int64 { return int64(i % 5) }, cpus(1)},
		{"none free", func(int) int64 { return 0 }, cpus(1)},
		{"labels", func(int) int64 { return 10 }, cpus(1).with(func(d *Demand) { d.Labels = inZone })},
		{"spread", func(int) int64 { return 10 }, cpus(1).with(spreadOut)},
		{"infeasible", func(int) int64 { return 10 }, cpus(11)},
	} {
		b.Run(c.name, func(b *testing.B) {
			var nodes []Node
			for i := range 10_000 {
				nodes = append(nodes, node(ids.Home(i), c.free(i), label(fmt.Sprintf("zone=%c", 'a'+i%3))))
			}
			nodes[1].Free[0].Amount = 0 // it does not stay
			v, cfg, rnd := &View{Self: 1, Nodes: nodes}, DefaultConfig(), seeded(1)
			free := make(set, 0, len(nodes))
			b.ReportAllocs()
			for b.Loop() {
				free = free[:0]
				for i := range v.Nodes {
					if n := &v.Nodes[i]; n.able(&c.d.Shape) && n.free(&c.d.Shape) {
						free = append(free, int32(i))
					}
				}
				place(v, &c.d, 1, free, cfg, rnd, func(at int32) { v.Nodes[at].take(c.d.Need, -1) })
			}
		})
	}
}
