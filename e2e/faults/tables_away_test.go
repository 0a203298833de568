package faults

import (
	"context"
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
