package mobulatest

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"mobula"
)

// runsOn runs a task on each of the nodes.
func runsOn(t *testing.T, ctx context.Context, c *Nodes, nodes ...int) {
	t.Helper()
	for _, i := range nodes {
		if got, err := at.Go(ctx, mobula.OnNode(c.ID(i))).Get(ctx); err != nil || got != c.ID(i) {
			t.Errorf("a task for node %d, %s, ran on %q, %v", i, c.ID(i), got, err)
		}
	}
}

// A node that was killed or stopped comes back under its id, whether or not the others have noted that it was gone; so does the one that carries the tables.
// Its drivers of before know that they are lost.
func TestNodesComeBack(t *testing.T) {
	c := Cluster(t, 3)
	ctx := limit(t, c.Connect(1).Context(t.Context()))
	there := limit(t, c.Connect(2).Context(t.Context()))
	id := c.ID(2)
	for _, again := range []struct {
		what string
		end  func()
	}{
		{"running", func() {}},
		{"killed", func() { c.Kill(2) }},
		{"killed and dead for the others", func() { c.Kill(2); c.Settle() }},
		{"stopped", func() { c.Stop(2); c.Settle() }},
	} {
		t.Log(again.what)
		again.end()
		c.Restart(2)
		c.Settle()
		if c.ID(2) != id {
			t.Errorf("it has id %s, was %s", c.ID(2), id)
		}
		runsOn(t, ctx, c, 0, 1, 2)
	}
	if _, err := at.Go(there).Get(there); !errors.Is(err, mobula.ErrOwnerDied) {
		t.Errorf("a driver of the killed node: %v", err)
	}
	runsOn(t, limit(t, c.Connect(2).Context(t.Context())), c, 0, 2)
	c.Kill(0)
	c.Settle()
	runsOn(t, ctx, c, 1, 2)
	c.Restart(0)
	c.Settle()
	runsOn(t, ctx, c, 0, 1, 2)
}

// Between two nodes that are cut off from one another nothing passes; both are alive, and all goes on when the network is mended.
func TestTwoNodesAreCutOff(t *testing.T) {
	c := Cluster(t, 3, mobula.WithCPUs(2)) // one may be lent to the job of a node that is cut off
	ctx := limit(t, c.Connect(1).Context(t.Context()))
	runsOn(t, ctx, c, 0, 1, 2)
	c.Cut(2, 1)
	c.Settle()
	r := at.Go(ctx, mobula.OnNode(c.ID(2)))
	runsOn(t, ctx, c, 0, 1)
	runsOn(t, limit(t, c.Connect(0).Context(t.Context())), c, 2)
	cut, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
	defer cancel()
	if got, err := r.Get(cut); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("over the cut: %q, %v", got, err)
	}
	c.Heal()
	if got, err := r.Get(ctx); err != nil || got != c.ID(2) {
		t.Errorf("after it: %q, %v", got, err)
	}
	c.Settle()
}

// An isolated node is dead for the others, where what it ran runs again. When the network is mended it ends, and can be started again.
func TestANodeIsIsolated(t *testing.T) {
	c := Cluster(t, 3)
	ctx := limit(t, c.Connect(0).Context(t.Context()))
	there := limit(t, c.Connect(2).Context(t.Context()))
	dir := t.TempDir()
	r := stays.Go(ctx, mobula.V(dir), mobula.PreferNode(c.ID(2)))
	noted(t, dir, c.ID(2))
	c.Isolate(2)
	c.Settle()
	if err := os.WriteFile(filepath.Join(dir, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := r.Get(ctx); err != nil || got != c.ID(0) && got != c.ID(1) {
		t.Errorf("it ended on node %q, %v", got, err)
	}
	if _, err := at.Go(ctx, mobula.OnNode(c.ID(2))).Get(ctx); !errors.Is(err, mobula.ErrUnschedulable) {
		t.Errorf("a task for the isolated node: %v", err)
	}
	c.Heal()
	c.Settle()
	if _, err := at.Go(there).Get(there); !errors.Is(err, mobula.ErrOwnerDied) {
		t.Errorf("its own driver, when it has ended: %v", err)
	}
	c.Restart(2)
	c.Settle()
	runsOn(t, ctx, c, 0, 1, 2)
}
