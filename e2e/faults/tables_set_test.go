package faults

import (
	"context"
	"fmt"
	"testing"

	"mobula"
	"mobula/e2e/harness"
	"mobula/gcs/gcstest"
	"mobula/internal/node"
	"mobula/internal/testkit"
	"mobula/internal/trust"
)

// The tables are in three NATS servers that others run. Each of them is killed in its turn, the leader first, and comes back: tasks go on, names are given, nodes join,
// and nobody is taken for dead but the node that is killed in the end.
func TestTheServersOfAnOperatorAreKilled(t *testing.T) {
	set := gcstest.StartSet(t)
	at := func(name string) node.Config {
		cfg := harness.WiredConfig(t, name)
		cfg.GCS, cfg.CPUs = set.URLs, 2
		return cfg
	}
	first := harness.StartWired(t, at("n1"))
	nodes := []*node.Node{first, harness.StartWired(t, harness.JoinTo(t, first, at("n2"), trust.Data)), harness.StartWired(t, harness.JoinTo(t, first, at("n3"), trust.Data))}
	ctx, c := harness.ConnectTo(t, nodes[2])
	harness.RanOn(ctx, t, nodes)
	leader := set.Leader(t, "mobula_actors")
	for round := range 3 {
		killed := (leader + round) % 3
		set.Kill(t, killed)
		for _, n := range nodes {
			big := makeBytes.Go(ctx, mobula.V(1<<20), mobula.OnNode(n.ID()))
			if got, err := nodeAndSize.Go(ctx, big).Get(ctx); err != nil {
				t.Fatalf("round %d, node %s: %q, %v", round, n.ID(), got, err)
			}
		}
		a, err := harness.CounterType.Spawn(ctx, mobula.V(1), mobula.Named("", fmt.Sprintf("round-%d", round)), mobula.Resources{CPU: 0})
		harness.Must(t, err)
		if got, err := harness.CounterInc.Go(ctx, a, mobula.V(1)).Get(ctx); err != nil || got != 2 {
			t.Fatalf("round %d: an actor with a name: %d, %v", round, got, err)
		}
		if round == 0 {
			nodes = append(nodes, harness.StartWired(t, harness.JoinTo(t, first, at("n4"), trust.Data)))
		}
		set.Start(t, killed)
		set.Leader(t, "mobula_actors")
	}
	harness.RanOn(ctx, t, nodes)
	s, err := c.Status(ctx)
	harness.Must(t, err)
	for _, j := range s.Jobs {
		if j.Retried > 0 {
			t.Errorf("%d attempts were made again", j.Retried)
		}
	}
	end, cancel := context.WithTimeout(ctx, testkit.Patience())
	defer cancel()
	harness.Must(t, nodes[3].Kill(end))
	states := func() map[string]string {
		page, err := c.ListNodes(ctx, mobula.Query{})
		harness.Must(t, err)
		out := make(map[string]string)
		for _, r := range page.Rows {
			out[r.Name] = r.State
		}
		return out
	}
	harness.Eventually(t, ctx, "the node that was killed is dead, and no other", func() bool {
		is := states()
		return is["n1"] == "ALIVE" && is["n2"] == "ALIVE" && is["n3"] == "ALIVE" && is["n4"] == "DEAD"
	})
}
