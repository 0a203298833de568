package cluster

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"mobula/e2e/harness"
	"mobula/internal/netns/nodes"
	"mobula/internal/state"
)

// agreed is how long nodes may take to agree on who is there.
const agreed = 10 * time.Second

func TestStressNodesAgreeOnWhoIsThere(t *testing.T) {
	ctx, cancel := harness.Limit(t)
	defer cancel()
	n := harness.Size(8, 32)
	c := start(t, network(t, n))
	all := c.Nodes()
	holds(t, fmt.Sprintf("the start of %d nodes, until they agree,", n), agree(t, ctx, all, n), agreed)
	var wg sync.WaitGroup
	killed := make([]error, 3)
	for i := range killed {
		wg.Go(func() { killed[i] = all[2+2*i].Kill(ctx) })
	}
	wg.Wait()
	for _, err := range killed {
		must(t, err)
	}
	left := slices.DeleteFunc(slices.Clone(all), func(n *nodes.Node) bool { i := slices.Index(all, n); return i == 2 || i == 4 || i == 6 })
	holds(t, fmt.Sprintf("the kill of three of %d nodes, until the others agree,", n), agree(t, ctx, left, n-3), agreed)
}

// agree waits until each node lists so many as alive, and gives the time that it took.
func agree(t *testing.T, ctx context.Context, all []*nodes.Node, alive int) time.Duration { //nolint:revive // t comes first
	t.Helper()
	begun := time.Now()
	var last time.Duration
	for _, n := range all { // one after the other: many commands at once would keep the nodes from their work
		says := ""
		harness.Eventually(t, ctx, fmt.Sprintf("the node on %v lists %d nodes as alive", n.Host.Addr, alive), func() bool {
			var page state.Page[state.Node]
			if err := n.Ask(ctx, &page, "list", "nodes", "--limit", "100"); err != nil {
				t.Fatal(err)
			}
			count := make(map[string]int)
			for _, row := range page.Rows {
				count[row.State]++
			}
			if now := fmt.Sprint(count); now != says {
				says = now
				t.Logf("%v: the node on %v lists %v", time.Since(begun).Round(time.Millisecond), n.Host.Addr, count)
			}
			last = time.Since(begun)
			return count[state.NodeAlive] == alive
		})
	}
	return last
}
