package sim

import (
	"fmt"
	"os"
	"testing"

	"mobula/graph"
)

// TestSweepStress compares the policies far from where TestRecordedWorkloads does: other clusters, links
// and noise. There is no promise for a single run here; there is one for all of them together, and a bound.
func TestSweepStress(t *testing.T) {
	if os.Getenv("MOBULA_STRESS") == "" {
		t.Skip("set MOBULA_STRESS=1: 450 settings, a minute")
	}
	var runs, above, over int
	var peak, moved, span, worst float64
	for _, name := range workloads {
		w := load(t, name)
		for i := range 90 {
			workers, threads := []int{2, 3, 4, 10, 48}[i%5], []int{1, 2, 4}[i/5%3]
			bandwidth, jitter := []float64{100e6, 500e6, 2500e6}[i/15%3], []float64{0.05, 0.4}[i/45]
			by := make(map[graph.Policy]*Report)
			for _, p := range []graph.Policy{graph.Withhold, graph.CoAssign, graph.Both} {
				cfg := w.Config(p, workers, threads)
				cfg.Bandwidth, cfg.Core.Bandwidth, cfg.Jitter = bandwidth, bandwidth, jitter
				by[p] = mustRun(t, cfg)
			}
			both, hold, co := by[graph.Both], by[graph.Withhold], by[graph.CoAssign]
			r := float64(both.Peak) / float64(hold.Peak)
			setting := fmt.Sprintf("%s, %d workers of %d, %.0f MB/s, jitter %.2f", name, workers, threads, bandwidth/1e6, jitter)
			if r > 1 {
				above++
				t.Logf("%s: holds %.2f GiB, withholding alone %.2f: %.0f %%", setting, gib(both.Peak), gib(hold.Peak), 100*r)
			}
			if both.Moved > co.Moved {
				over++
				t.Logf("%s: moves %.2f GiB, co-assignment alone %.2f", setting, gib(both.Moved), gib(co.Moved))
			}
			runs++
			peak += r
			worst = max(worst, r)
			moved += float64(both.Moved) / float64(max(co.Moved, 1))
			span += float64(both.Makespan) / float64(hold.Makespan)
		}
	}
	n := float64(runs)
	t.Logf("%d runs: peak %.2f of withholding's on average, %.2f at worst, above it in %d; moved %.2f of co-assignment's, above it in %d; time %.2f of withholding's",
		runs, peak/n, worst, above, moved/n, over, span/n)
	if peak/n > 0.9 || worst > 1.5 || moved/n > 0.6 || over > runs/100 || span/n > 0.9 {
		t.Error("worse than it was")
	}
}
