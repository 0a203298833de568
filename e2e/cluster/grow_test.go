package cluster

import (
	"strings"
	"testing"

	"mobula"
	"mobula/e2e/harness"
	"mobula/internal/netns/nodes"
)

// One server grows to three while tasks run, and is lost with its disk: no task fails, tokens are made and redeemed by the others, and a node joins.
func TestAClusterGrowsAndLosesItsFirstServer(t *testing.T) {
	ctx, cancel := harness.Limit(t)
	defer cancel()
	hosts := network(t, 5)
	c := start(t, hosts[1:3])
	first, worker := c.Nodes()[0], c.Nodes()[1]
	ctx, driver := connectAt(t, ctx, worker, c)
	stop, load := loadOn(t, ctx, idOf(t, ctx, worker))
	var servers []*nodes.Node
	for _, h := range hosts[3:] {
		s, err := c.JoinAs(ctx, h, "control-plane")
		must(t, err)
		servers = append(servers, s)
	}
	harness.Eventually(t, ctx, "each server has three copies of the tables", func() bool {
		for _, s := range servers {
			var is struct{ Copies int }
			if s.Ask(ctx, &is, "status") != nil || is.Copies != 3 {
				return false
			}
		}
		return true
	})
	must(t, first.Kill(ctx))
	var made struct{ Token string }
	harness.Eventually(t, ctx, "another server makes a token", func() bool { return servers[0].Ask(ctx, &made, "token", "create") == nil })
	at := servers[1].Host.Addr.String() // which has not made it
	joined, err := c.JoinAt(ctx, hosts[0], made.Token, first.Host.Addr.String()+","+at)
	must(t, err)
	id := idOf(t, ctx, joined)
	if at, err := here.Go(ctx, mobula.OnNode(id)).Get(ctx); err != nil || at != id {
		t.Errorf("a task for the node that joined ran on %q, %v", at, err)
	}
	stop()
	if err := load(); err != nil {
		t.Errorf("tasks meanwhile: %v", err)
	}
	if again := retried(t, ctx, driver); again != 0 {
		t.Errorf("%d tasks ran again", again)
	}
	if out, err := servers[1].Run(ctx, "list", "nodes"); err != nil || !strings.Contains(string(out), joined.Name) {
		t.Errorf("%s, %v", out, err)
	}
}
