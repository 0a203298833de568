package faults

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"mobula"
	"mobula/e2e/harness"
	"mobula/gcs/gcstest"
	"mobula/internal/node"
	"mobula/internal/trust"
)

// tablesAway is for how long the control plane is away: longer than a node waits between two heartbeats.
const tablesAway = 5 * time.Second

// While the control plane is away stateless tasks run on every node, with values from node to node, and actors are made that have no name. Nobody is taken for dead
// for it. A name is given when it is back.
func TestTasksFlowWithoutTheControlPlane(t *testing.T) {
	url, stop, start := gcstest.Stopping(t)
	at := func(name string) node.Config {
		cfg := harness.WiredConfig(t, name)
		cfg.GCS, cfg.CPUs = []string{url}, 2
		return cfg
	}
	first := harness.StartWired(t, at("n1"))
	nodes := []*node.Node{first, harness.StartWired(t, harness.JoinTo(t, first, at("n2"), trust.Data)), harness.StartWired(t, harness.JoinTo(t, first, at("n3"), trust.Data))}
	ctx, c := harness.ConnectTo(t, nodes[2])
	harness.RanOn(ctx, t, nodes)

	stop()
	stopped := time.Now()
	rounds := 0
	for ; time.Since(stopped) < tablesAway; rounds++ {
		for _, n := range nodes {
			// A round is some milliseconds' work; what it may take is far less than the control plane is away.
			begun, limit := time.Now(), tablesAway/2
			short, cancel := context.WithTimeout(ctx, limit)
			big := makeBytes.Go(short, mobula.V(1<<20), mobula.OnNode(n.ID()))
			if got, err := nodeAndSize.Go(short, big, mobula.OnNode(nodes[rounds%len(nodes)].ID())).Get(short); err != nil {
				t.Fatalf("round %d, node %s, after %v of at most %v: %q, %v", rounds, n.ID(), time.Since(begun), limit, got, err)
			}
			cancel()
		}
		a, err := harness.CounterType.Spawn(ctx, mobula.V(1), mobula.Resources{CPU: 0})
		harness.Must(t, err)
		if got, err := harness.CounterInc.Go(ctx, a, mobula.V(1)).Get(ctx); err != nil || got != 2 {
			t.Fatalf("an actor without a name: %d, %v", got, err)
		}
		a.Release()
	}
	t.Logf("%d rounds in %v", rounds, time.Since(stopped))
	listedAlive(t, ctx, nodes, url)
	s, err := c.Status(ctx)
	harness.Must(t, err)
	for _, j := range s.Jobs {
		if j.Retried > 0 {
			t.Errorf("%d attempts were made again", j.Retried)
		}
	}

	start()
	named, err := harness.CounterType.Spawn(ctx, mobula.V(1), mobula.Named("", "back"), mobula.Resources{CPU: 0})
	harness.Must(t, err)
	if got, err := harness.CounterInc.Go(ctx, named, mobula.V(1)).Get(ctx); err != nil || got != 2 {
		t.Errorf("an actor with a name: %d, %v", got, err)
	}
	harness.RanOn(ctx, t, nodes)
}

// listedAlive checks that each of the nodes lists all of them as alive, though none has been heard of by the tables for long, and says that those are away.
func listedAlive(t *testing.T, ctx context.Context, nodes []*node.Node, tables string) { //nolint:revive // t comes first
	t.Helper()
	for _, n := range nodes {
		_, c := harness.ConnectTo(t, n)
		page, err := c.ListNodes(ctx, mobula.Query{Filters: []mobula.Filter{{Field: "state", Value: "ALIVE"}}})
		harness.Must(t, err)
		if len(page.Rows) != len(nodes) {
			t.Errorf("node %s lists as alive %+v", n.Name(), page.Rows)
		}
		if len(page.Unreachable) != 1 || page.Unreachable[0].Node != tables || !strings.Contains(page.Unreachable[0].Why, "control plane does not answer") {
			t.Errorf("node %s says that these are missing: %+v, want %s", n.Name(), page.Unreachable, tables)
		}
	}
}

// Where most control-plane servers are lost, nothing is written any more. The others still list one another as alive, and say why the list may be old.
func TestNodesAreListedWithoutMostServers(t *testing.T) {
	first := harness.StartWired(t, harness.WiredConfig(t, "n1"))
	nodes := []*node.Node{first}
	for i, role := range []trust.Role{trust.ControlPlane, trust.ControlPlane, trust.Data} {
		nodes = append(nodes, harness.StartWired(t, harness.JoinTo(t, first, harness.WiredConfig(t, fmt.Sprintf("n%d", i+2)), role)))
	}
	ctx, cancel := harness.Limit(t)
	defer cancel()
	harness.Eventually(t, ctx, "each server has three copies of the tables", func() bool {
		_, c := harness.ConnectTo(t, nodes[2])
		s, err := c.Status(ctx)
		return err == nil && s.Copies == 3
	})
	for _, n := range nodes[1:3] {
		harness.Must(t, n.Kill(ctx))
	}
	_, server := harness.ConnectTo(t, nodes[0])
	harness.Eventually(t, ctx, "the server that is left says that there is no majority, and who is missing", func() bool {
		s, err := server.Status(ctx)
		harness.Must(t, err)
		return strings.Contains(s.Control, "no majority: 1 of 3") && strings.HasSuffix(s.Control, "n2, n3")
	})
	for _, n := range []*node.Node{nodes[0], nodes[3]} {
		_, c := harness.ConnectTo(t, n)
		last := ""
		harness.Eventually(t, ctx, n.Name()+" lists who lives, and says that the tables are away", func() bool {
			page, err := c.ListNodes(ctx, mobula.Query{})
			harness.Must(t, err)
			states := make(map[string]string)
			for _, r := range page.Rows {
				states[r.Name] = r.State
			}
			if now := fmt.Sprintf("%v, missing %v", states, page.Unreachable); now != last {
				last = now
				t.Logf("%s: %s", n.Name(), now)
			}
			return maps.Equal(states, map[string]string{"n1": "ALIVE", "n2": "SILENT", "n3": "SILENT", "n4": "ALIVE"}) &&
				slices.ContainsFunc(page.Unreachable, func(u mobula.Unreachable) bool {
					return u.Node == "n2" && strings.Contains(u.Why, "control plane does not answer")
				})
		})
	}
}
