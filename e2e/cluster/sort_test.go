package cluster

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"mobula/e2e/harness"
	"mobula/internal/netns/nodes"
)

// The sort checks order, count and sum of its records itself.
func TestTheSortSurvivesTheKillOfANode(t *testing.T) {
	for victim := 1; victim <= 2; victim++ {
		t.Run(fmt.Sprintf("node %d", victim+1), func(t *testing.T) {
			sortUnder(t, false, func(ctx context.Context, c *nodes.Cluster) {
				must(t, c.Nodes()[victim].Kill(ctx))
			})
		})
	}
}

// A node is killed and started again in its directory: one of the others, that of the driver, or both at once. What its store had is there still, or it is made again.
func TestTheSortSurvivesANodeThatComesBack(t *testing.T) {
	type life struct {
		name    string
		victims []int
		keep    bool
	}
	lives := []life{{"the driver's", []int{0}, true}, {"both, not kept", []int{0, 1}, false}}
	if harness.Size(0, 1) > 0 { // at full size
		lives = append(lives, life{"another node", []int{1}, true}, life{"another node, not kept", []int{1}, false}, life{"the driver's, not kept", []int{0}, false})
	}
	for _, x := range lives {
		t.Run(x.name, func(t *testing.T) {
			sortUnder(t, x.keep, func(ctx context.Context, c *nodes.Cluster) {
				was := c.Nodes()
				for _, i := range x.victims {
					must(t, was[i].Kill(ctx))
				}
				for _, i := range x.victims {
					_, err := c.Return(ctx, was[i])
					must(t, err)
				}
			})
		})
	}
}

// sortUnder has something happen to a cluster of three nodes while it sorts.
func sortUnder(t *testing.T, keep bool, do func(context.Context, *nodes.Cluster)) {
	t.Helper()
	ctx, cancel := harness.Limit(t)
	defer cancel()
	const tasks = 0.3 // of them are done when it happens
	store := fmt.Sprintf("%dMiB", harness.Size(64, 256))
	c := startAs(t, keep, network(t, 3), "--store-size", store)
	cmd := exec.CommandContext(ctx, build(t, "samples/sort"), "-json", "-sample", "0", "-workers", "6",
		"-size", fmt.Sprintf("%dMiB", harness.Size(256, 2048)), "-store", store, "-partitions", "24")
	cmd.Env = append(os.Environ(), "MOBULA_ADDRESS="+c.Nodes()[0].Address)
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
	do(ctx, c)
	var again, of uint64
	for over := false; !over; {
		select {
		case err := <-ended:
			if over = true; err != nil {
				t.Fatalf("the sort: %v\n%s%s", err, out.Bytes(), failed.Bytes())
			}
		case <-ctx.Done():
			t.Fatalf("the sort does not end: %s", failed.Bytes())
		case <-time.After(20 * time.Millisecond):
		}
		s, err := d.Status(ctx)
		must(t, err)
		for _, j := range s.Jobs {
			again, of = max(again, j.Retried), max(of, j.Submitted)
		}
	}
	t.Logf("%d attempts were charged, %d tasks submitted: %s", again, of, out.Bytes())
	if again > of {
		t.Errorf("%d attempts were charged for %d tasks: some ran again for each of their results", again, of)
	}
}
