package restarts

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"mobula"
	"mobula/e2e/harness"
	"mobula/internal/node"
	"mobula/internal/trust"
	"mobula/internal/trust/credentials"
)

// calendar is the wall clock of all machines of a test.
type calendar struct{ ahead atomic.Int64 }

func (c *calendar) now() time.Time       { return time.Now().Add(time.Duration(c.ahead.Load())) }
func (c *calendar) pass(d time.Duration) { c.ahead.Add(int64(d)) }

// on has a node go by the calendar.
func (c *calendar) on(cfg node.Config) node.Config {
	cfg.Wires.Wall = c.now
	return cfg
}

const day = 24 * time.Hour

// endOf is when the certificate in a node's directory ends.
func endOf(t *testing.T, cfg node.Config) time.Time {
	t.Helper()
	c, err := credentials.InDir(cfg.Dir).Read()
	if err != nil {
		t.Fatal(err)
	}
	return c.Chain[0].NotAfter
}

// Nodes renew their certificates while they run: months pass in days, and no certificate ends.
func TestCertificatesRenewThemselves(t *testing.T) {
	ctx, cancel := harness.Limit(t)
	defer cancel()
	c := &calendar{}
	configs := []node.Config{c.on(harness.WiredConfig(t, "n1"))}
	first := harness.StartWired(t, configs[0])
	configs = append(configs, harness.JoinTo(t, first, c.on(harness.WiredConfig(t, "n2")), trust.Data))
	nodes := []*node.Node{first, harness.StartWired(t, configs[1])}
	for range 5 {
		before := []time.Time{endOf(t, configs[0]), endOf(t, configs[1])}
		c.pass(5 * day)
		for i, cfg := range configs {
			harness.Eventually(t, ctx, cfg.Name+" renews its certificate", func() bool { return endOf(t, cfg).After(before[i].Add(4 * day)) })
		}
	}
	driver, _ := harness.ConnectTo(t, first)
	harness.RanOn(driver, t, nodes)
}

// Three servers and a data node that were all off until their certificates had ended come back by themselves.
func TestAClusterComesBackAfterWeeks(t *testing.T) {
	ctx, cancel := harness.Limit(t)
	defer cancel()
	c := &calendar{}
	configs := []node.Config{c.on(harness.WiredConfig(t, "n1"))}
	nodes := []*node.Node{harness.StartWired(t, configs[0])}
	for i := 2; i <= 4; i++ {
		role := trust.ControlPlane
		if i == 4 {
			role = trust.Data
		}
		configs = append(configs, harness.JoinTo(t, nodes[0], c.on(harness.WiredConfig(t, fmt.Sprintf("n%d", i))), role))
		nodes = append(nodes, harness.StartWired(t, configs[i-1]))
	}
	for _, cfg := range configs[:3] {
		harness.Eventually(t, ctx, cfg.Name+" has a copy of the authority", func() bool {
			_, err := os.Stat(filepath.Join(cfg.Dir, "authority.json"))
			return err == nil
		})
	}
	for i := range nodes {
		harness.StopNode(t, nodes[len(nodes)-1-i])
	}
	c.pass(20 * day)
	var all sync.WaitGroup
	failed := make([]error, 3)
	for i := range configs {
		configs[i].Wires.Join, configs[i].Wires.Token, configs[i].Wires.Role = nil, "", ""
		if i == 3 {
			break
		}
		all.Go(func() { nodes[i], failed[i] = node.Start(ctx, configs[i]) })
	}
	all.Wait()
	for i, err := range failed {
		if err != nil {
			t.Fatalf("server %d: %v", i+1, err)
		}
		t.Cleanup(func() { harness.StopNode(t, nodes[i]) })
	}
	nodes[3] = harness.StartWired(t, configs[3])
	driver, _ := harness.ConnectTo(t, nodes[0])
	harness.RanOn(driver, t, nodes)
}

// Clocks of machines that are set, ahead and back, in any order, disturb nothing: no task fails or runs again, and no node is taken for dead.
func TestClocksThatAreSetWhileTasksRun(t *testing.T) {
	clocks := []*calendar{{}, {}, {}}
	nodes := []*node.Node{harness.StartWired(t, clocks[0].on(harness.WiredConfig(t, "n1")))}
	for i, name := range []string{"n2", "n3"} {
		nodes = append(nodes, harness.StartWired(t, harness.JoinTo(t, nodes[0], clocks[i+1].on(harness.WiredConfig(t, name)), trust.Data)))
	}
	ctx, c := harness.ConnectTo(t, nodes[1])
	harness.RanOn(ctx, t, nodes)
	for _, i := range []int{2, 0, 1} { // a node that works, the server, the node of the driver
		for _, step := range []time.Duration{3 * time.Hour, -30 * time.Hour, 5 * day, -4 * day, -365 * day, 365*day + 3*time.Hour} {
			clocks[i].pass(step)
			for _, n := range nodes {
				if at, err := harness.Where.Go(ctx, mobula.V(20), mobula.OnNode(n.ID())).Get(ctx); err != nil || at != n.Address() {
					t.Fatalf("%s, whose clock was set by %v: a task for %s ran at %q, %v", nodes[i].Name(), step, n.Name(), at, err)
				}
			}
		}
	}
	page, err := c.ListNodes(ctx, mobula.Query{Filters: []mobula.Filter{{Field: "state", Value: "ALIVE"}}})
	harness.Must(t, err)
	if len(page.Rows) != len(nodes) || len(page.Unreachable) > 0 {
		t.Errorf("alive are %+v, missing %v", page.Rows, page.Unreachable)
	}
	if s := harness.OwnerStats(t, ctx, nodes[1]); s.Retried > 0 || s.WorkersLost > 0 {
		t.Errorf("%d attempts were made again, %d workers lost", s.Retried, s.WorkersLost)
	}
}
