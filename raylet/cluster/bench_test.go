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
			v := &View{Self: 1}
			for i := range 10_000 {
				v.Nodes = append(v.Nodes, node(ids.Home(i), c.free(i), label(fmt.Sprintf("zone=%c", 'a'+i%3))))
			}
			v.Nodes[1].Free[0].Amount = 0 // it does not stay
			cfg, rnd := DefaultConfig(), seeded(1)
			b.ReportAllocs()
			for b.Loop() {
				Place(v, c.d, cfg, rnd)
			}
		})
	}
}
