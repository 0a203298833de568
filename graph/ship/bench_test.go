package ship_test

import (
	"maps"
	"slices"
	"testing"

	"mobula"
	"mobula/graph/spec"
	"mobula/mobulatest"
)

// What a task costs beyond its function: a row of additions and their sum, planned, ordered and run.
func BenchmarkTask(b *testing.B) {
	ctx := mobulatest.Context(b, mobula.WithProcesses(), mobula.WithCPUs(2))
	all := executors()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		b.Run(name, func(b *testing.B) {
			g := spec.New()
			level := make([]spec.Key, b.N)
			for i := range level {
				level[i] = g.Task(spec.K("leaf", i), add, i, 1)
			}
			root := g.Task(spec.K("root"), sum, level)
			b.ReportAllocs()
			b.ResetTimer()
			if _, err := spec.Get[int](ctx, all[name], g, root); err != nil {
				b.Fatal(err)
			}
		})
	}
}
