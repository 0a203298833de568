package cluster

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"mobula/e2e/harness"
	"mobula/internal/netns/nodes"
	"mobula/internal/state"
)

// What the check lists is what the kernel has: each listener of each host, and no other. In a cluster as it is started nothing is open to other machines.
func TestTheCheckKnowsEachListener(t *testing.T) {
	ctx, cancel := harness.Limit(t)
	defer cancel()
	c := start(t, network(t, 3), "--metrics-address", "127.0.0.1:9464")
	ctx, _ = connect(t, ctx, c)
	running(t, ctx, idOf(t, ctx, c.Nodes()[1])) // so that there are workers, too
	var report state.SecurityReport
	must(t, c.Nodes()[2].Ask(ctx, &report, "security", "check"))
	if len(report.Nodes) != 3 || len(report.Unreachable) > 0 || report.Exposed() > 0 {
		t.Fatalf("checked are %d nodes, without answer %v, exposed %d: %+v", len(report.Nodes), report.Unreachable, report.Exposed(), report)
	}
	var listed struct {
		Rows []struct{ Name, Role, Reached string }
	}
	must(t, c.Nodes()[1].Ask(ctx, &listed, "list", "nodes"))
	for i, r := range listed.Rows {
		if n := c.Nodes()[slices.IndexFunc(c.Nodes(), func(n *nodes.Node) bool { return n.Name == r.Name })]; r.Reached != fmt.Sprintf("%v:%d", n.Host.Addr, nodes.Port) || (r.Role == "control-plane") != (i == 0) {
			t.Errorf("node %s on %v is listed as %+v", n.Name, n.Host.Addr, r)
		}
	}
	for i, n := range c.Nodes() {
		of := report.Nodes[slices.IndexFunc(report.Nodes, func(s state.NodeSecurity) bool { return s.Node == n.Name })]
		var listed, there []string
		for _, l := range of.Listeners {
			if l.Unexpected {
				t.Errorf("node %s does not know what %s %s is", n.Name, l.Network, l.Address)
			}
			if l.Network != "unix" {
				listed = append(listed, l.Network+" "+l.Address)
			}
			if l.Away && (l.Open || !strings.HasPrefix(l.Protection, "TLS 1.3") && !strings.HasPrefix(l.Protection, "AES-256")) {
				t.Errorf("node %s: %+v", n.Name, l)
			}
		}
		for _, l := range listeners(t, n.Host) {
			there = append(there, l.String())
		}
		slices.Sort(listed)
		slices.Sort(there)
		if !slices.Equal(listed, there) {
			t.Errorf("node %s lists %q, and there are %q", n.Name, listed, there)
		}
		if of.Bundle == 0 || len(of.Certificates) != 2 || (of.Tokens != nil) != (i == 0) {
			t.Errorf("node %s: %+v", n.Name, of)
		}
	}
}

// The gossip's key and the root of the authority are replaced while tasks run: none fails, no node is taken for dead, and a node that was off meanwhile comes back.
func TestKeysAreReplacedWhileTasksRun(t *testing.T) {
	ctx, cancel := harness.Limit(t)
	defer cancel()
	c := start(t, network(t, 3))
	ctx, driver := connect(t, ctx, c)
	first, second, third := c.Nodes()[0], c.Nodes()[1], c.Nodes()[2]
	stop, load := loadOn(t, ctx, idOf(t, ctx, second))
	must(t, third.Stop())

	harness.Eventually(t, ctx, "the node that stops is gone", func() bool { return len(checked(t, ctx, first).Nodes) == 2 })
	before := checked(t, ctx, first)
	for _, what := range []string{"gossip", "root", "gossip"} {
		var r state.Rotating
		must(t, first.Ask(ctx, &r, "security", "rotate", what))
		harness.Eventually(t, ctx, what+" is replaced on all nodes", func() bool { return done(checked(t, ctx, first), before, what) })
		before = checked(t, ctx, first)
	}
	if _, err := first.Run(ctx, "security", "rotate", "root"); err == nil || !strings.Contains(err.Error(), "rotated before") {
		t.Errorf("a rotation of the root during one: %v", err)
	}
	back, err := c.Return(ctx, third)
	must(t, err)
	harness.Eventually(t, ctx, "the node that was off has the keys", func() bool {
		now := checked(t, ctx, first)
		return len(now.Nodes) == 3 && !slices.ContainsFunc(now.Nodes, func(n state.NodeSecurity) bool { return n.Bundle != before.Nodes[0].Bundle || len(n.Weak) > 0 })
	})
	var r state.Rotating
	must(t, first.Ask(ctx, &r, "security", "rotate", "root", "--finish"))
	harness.Eventually(t, ctx, "one root is trusted", func() bool {
		return !slices.ContainsFunc(checked(t, ctx, first).Nodes, func(n state.NodeSecurity) bool { return len(n.Certificates) != 2 || n.Bundle < r.Bundle })
	})
	stop()
	if err := load(); err != nil {
		t.Errorf("tasks meanwhile: %v", err)
	}
	for _, n := range []*nodes.Node{first, second, back} {
		if log := n.Log(); strings.Contains(log, "nothing speaks for a node any more") {
			t.Errorf("a node was taken for dead: %s", log)
		}
	}
	if again := retried(t, ctx, driver); again != 0 {
		t.Errorf("%d tasks ran again", again)
	}
}

// checked is the check of all nodes. One that has just come back may be silent the first time.
func checked(t *testing.T, ctx context.Context, n *nodes.Node) (r state.SecurityReport) { //nolint:revive // t comes first
	t.Helper()
	harness.Eventually(t, ctx, "all nodes are checked", func() bool { return n.Ask(ctx, &r, "security", "check") == nil })
	return r
}

// done tells whether all nodes have another key or root than before, and are done with the rotation.
func done(now, before state.SecurityReport, what string) bool {
	newest := func(r state.SecurityReport, i int) string {
		n := r.Nodes[i]
		if what == "gossip" {
			return fmt.Sprint(r.Nodes[0].Keys)
		}
		return n.Certificates[len(n.Certificates)-1].Serial
	}
	for i := range now.Nodes {
		n := now.Nodes[i]
		if newest(now, i) == newest(before, i) || len(n.Weak) > 0 || n.Bundle != now.Nodes[0].Bundle {
			return false
		}
	}
	return now.Nodes[0].Keys[0].State == ""
}
