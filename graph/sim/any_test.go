package sim

import (
	"fmt"
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"mobula/graph"
	"mobula/internal/testkit"
)

// TestAnyGraph runs any graph over any cluster with any faults: everything wanted is delivered, by every policy.
func TestAnyGraph(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 120).Draw(t, "tasks")
		tasks, sizes := make([]graph.Task, n), make([]int64, n)
		var wanted []int32
		for i := range tasks {
			tasks[i] = graph.Task{Key: fmt.Sprint(i), Group: fmt.Sprintf("g%d", rapid.IntRange(0, 4).Draw(t, "group"))}
			if i > 0 {
				tasks[i].Deps = rapid.SliceOfN(rapid.Int32Range(int32(max(0, i-20)), int32(i-1)), 0, 3).Draw(t, "deps")
			}
			sizes[i] = rapid.SampledFrom([]int64{0, 100, mb, 100 * mb}).Draw(t, "bytes")
			if i == n-1 || rapid.IntRange(0, 9).Draw(t, "wanted") == 0 {
				wanted = append(wanted, int32(i))
			}
		}
		g, err := graph.New(tasks, nil, wanted)
		if err != nil {
			t.Fatal(err)
		}
		cfg := Config{
			Graph: g, Core: graph.DefaultConfig(), Jitter: 0.5, Seed: rapid.Uint64().Draw(t, "seed"), Latency: DefaultLatency,
			Workers: rapid.IntRange(1, 5).Draw(t, "workers"), Threads: rapid.IntRange(1, 3).Draw(t, "threads"),
			Memory:   rapid.SampledFrom([]int64{0, mb, 500 * mb}).Draw(t, "memory"),
			Size:     func(t int32) int64 { return sizes[t] },
			Duration: func(t int32) time.Duration { return time.Duration(1+mix(uint64(t))%1000) * ms },
		}
		cfg.Core.Policy = rapid.SampledFrom([]graph.Policy{graph.Both, graph.Withhold, graph.CoAssign}).Draw(t, "policy")
		cfg.Core.Saturation = rapid.SampledFrom([]float64{0, 1.1, math.Inf(1)}).Draw(t, "saturation")
		cfg.Core.AllowedFailures = 100
		for i := range rapid.IntRange(0, 6).Draw(t, "faults") {
			cfg.Faults = append(cfg.Faults, Fault{
				At:     time.Duration(rapid.IntRange(0, 20_000).Draw(t, "at")) * ms,
				Worker: i % cfg.Workers, Kind: rapid.SampledFrom([]FaultKind{Kill, Leave, Pause, Resume, Join}).Draw(t, "kind"),
			})
		}
		end := time.Minute
		for i := range cfg.Workers { // in the end somebody is there
			cfg.Faults = append(cfg.Faults, Fault{At: end, Worker: i, Kind: Resume})
		}
		cfg.Faults = append(cfg.Faults, Fault{At: end, Kind: Join})
		r, err := Run(cfg)
		if err != nil {
			t.Fatal(err)
		}
		got := make(map[int32]bool)
		for _, x := range r.Results {
			got[x] = true
		}
		if len(got) != len(wanted) || len(r.Failures) > 0 {
			t.Fatalf("%d of %d results, failures %v", len(got), len(wanted), r.Failures)
		}
	})
}
