package cluster

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"testing"

	"mobula/e2e/harness"
)

// The sort checks order, count and sum of its records itself.
func TestTheSortSurvivesTheKillOfANode(t *testing.T) {
	for victim := 1; victim <= 2; victim++ {
		t.Run(fmt.Sprintf("node %d", victim+1), func(t *testing.T) {
			ctx, cancel := harness.Limit(t)
			defer cancel()
			const tasks = 0.3 // of them are done when the node is killed
			store := fmt.Sprintf("%dMiB", harness.Size(64, 256))
			c := start(t, network(t, 3), "--store-size", store)
			n := c.Nodes()
			cmd := exec.CommandContext(ctx, build(t, "samples/sort"), "-json", "-sample", "0", "-workers", "6",
				"-size", fmt.Sprintf("%dMiB", harness.Size(256, 2048)), "-store", store, "-partitions", "24")
			cmd.Env = append(os.Environ(), "MOBULA_ADDRESS="+n[0].Address)
			var out, failed bytes.Buffer
			cmd.Stdout, cmd.Stderr = &out, &failed
			ctx, d := connect(t, ctx, c) // which may take longer than the sort
			must(t, cmd.Start())
			ended := make(chan error, 1)
			go func() { ended <- cmd.Wait() }()
			harness.Eventually(t, ctx, "a third of the sort is done", func() bool {
				s, err := d.Status(ctx)
				must(t, err)
				for _, j := range s.Jobs {
					if j.Submitted > 10 && float64(j.Finished) > tasks*float64(j.Submitted) {
						return true
					}
				}
				return false
			})
			must(t, n[victim].Kill(ctx))
			select {
			case err := <-ended:
				if err != nil {
					t.Fatalf("the sort: %v\n%s%s", err, out.Bytes(), failed.Bytes())
				}
			case <-ctx.Done():
				t.Fatalf("the sort does not end: %s", failed.Bytes())
			}
			t.Logf("%s", out.Bytes())
		})
	}
}
