package cluster

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"mobula"
	"mobula/e2e/harness"
	"mobula/internal/netns/nodes"
)

// here tells on which node it runs.
var here = mobula.Register0("e2e/cluster/here", func(ctx context.Context) (string, error) {
	at, err := mobula.GetRuntimeContext(ctx)
	return at.NodeID, err
})

// noted writes down in a directory where and when it runs, and goes on until a file "go" is there. Its result is the node where it ended.
var noted = mobula.Register1("e2e/cluster/noted", func(ctx context.Context, dir string) (string, error) {
	at, err := mobula.GetRuntimeContext(ctx)
	if err != nil {
		return "", err
	}
	name := fmt.Sprintf("%d-%s", at.Attempt, at.NodeID)
	if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
		return "", err
	}
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		if _, err := os.Stat(filepath.Join(dir, "go")); err == nil {
			return at.NodeID, nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
})

// attempts are the notes of a task: "ATTEMPT-NODE".
func attempts(t *testing.T, dir string) (out []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	must(t, err)
	for _, e := range entries {
		if e.Name() != "go" {
			out = append(out, e.Name())
		}
	}
	return out
}

// running submits a task that prefers a node, and waits until it runs there.
func running(t *testing.T, ctx context.Context, on string) (dir string, ref mobula.Ref[string]) { //nolint:revive // t comes first
	t.Helper()
	dir = t.TempDir()
	ref = noted.Go(ctx, mobula.V(dir), mobula.PreferNode(on))
	harness.Eventually(t, ctx, "the task runs on node "+on, func() bool { return len(attempts(t, dir)) > 0 })
	if got := attempts(t, dir); !strings.HasSuffix(got[0], "-"+on) {
		t.Fatalf("it runs as %v, want it on node %s", got, on)
	}
	return dir, ref
}

// letGo has the task end, and gives the node where it did.
func letGo(t *testing.T, ctx context.Context, dir string, ref mobula.Ref[string]) string { //nolint:revive // t comes first
	t.Helper()
	must(t, os.WriteFile(filepath.Join(dir, "go"), nil, 0o600))
	at, err := ref.Get(ctx)
	must(t, err)
	return at
}

// Lost work runs again elsewhere within this time.
const (
	afterKill = 2 * time.Second
	afterCut  = 10 * time.Second
)

// lose takes a node away, and holds the cluster to the time in which what ran there runs elsewhere.
func lose(t *testing.T, most time.Duration, take func(ctx context.Context, n *nodes.Node) error) (context.Context, *nodes.Node) {
	t.Helper()
	ctx, cancel := harness.Limit(t)
	t.Cleanup(cancel)
	c := start(t, network(t, 3))
	ctx, _ = connect(t, ctx, c)
	victim := c.Nodes()[1]
	id := idOf(t, ctx, victim)
	dir, ref := running(t, ctx, id)
	begun := time.Now()
	must(t, take(ctx, victim))
	harness.Eventually(t, ctx, "the task runs again", func() bool { return len(attempts(t, dir)) > 1 })
	holds(t, fmt.Sprintf("lost work, until it runs again as %v,", attempts(t, dir)), time.Since(begun), most)
	if at := letGo(t, ctx, dir, ref); at == id {
		t.Errorf("it ended on node %s, which is lost", at)
	}
	return ctx, victim
}

func TestStressWorkOfAKilledNodeRunsAgain(t *testing.T) {
	lose(t, afterKill, func(ctx context.Context, n *nodes.Node) error { return n.Kill(ctx) })
}

// When the link is back the node, and what still runs there, is of no effect.
func TestStressWorkOfACutNodeRunsAgain(t *testing.T) {
	ctx, victim := lose(t, afterCut, func(ctx context.Context, n *nodes.Node) error { return n.Host.Cut(ctx) })
	must(t, victim.Host.Heal(ctx))
}
