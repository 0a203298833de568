package disk

import (
	"context"
	"testing"
	"time"

	"mobula"
	"mobula/e2e/harness"
	"mobula/internal/node"
)

// drained reads an input, takes its time, and gives its first element.
var drained = mobula.Register2("e2e/drained", func(ctx context.Context, xs []float64, ms int) (float64, error) {
	if _, err := sleepyWait(ctx, ms); err != nil {
		return 0, err
	}
	return xs[0], nil
})

func sleepyWait(ctx context.Context, ms int) (int, error) {
	select {
	case <-time.After(time.Duration(ms) * time.Millisecond):
		return ms, nil
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

// A job whose inputs are more than memory and disk together goes on as long as its own tasks let go of them: their makers wait.
func TestAJobDrainsThroughAFullDisk(t *testing.T) {
	t.Parallel() // it mostly waits
	if !harness.InMounts(t) {
		return
	}
	dir := tmpfs(t, "24m")
	inputs := harness.Size(60, 112)
	for _, order := range []string{"makers first", "in pairs"} {
		harness.BothModes(t, node.Config{CPUs: 2, StoreBytes: 16 * harness.MiB, SpillURLs: []string{dir}}, func(t *testing.T, ctx context.Context, _ *node.Node) {
			var ins []mobula.Ref[[]float64]
			var outs []mobula.Ref[float64]
			drain := func(in mobula.Ref[[]float64]) {
				outs = append(outs, drained.Go(ctx, in, mobula.V(40)))
				in.Release()
			}
			for i := range inputs {
				in := harness.Fill.Go(ctx, mobula.V(harness.MiB/8), mobula.V(float64(i)))
				if order == "in pairs" {
					drain(in)
				} else {
					ins = append(ins, in)
				}
			}
			for _, in := range ins {
				drain(in)
			}
			start := time.Now()
			failed := 0
			for i, out := range outs {
				switch x, err := out.Get(ctx); {
				case err != nil:
					if failed++; failed == 1 {
						t.Errorf("%s: input %d: %v", order, i, err)
					}
				case x != float64(i):
					t.Errorf("%s: input %d gives %v", order, i, x)
				}
			}
			t.Logf("%s: %d of %d failed in %v", order, failed, inputs, time.Since(start))
		})
	}
}
