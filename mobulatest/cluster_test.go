package mobulatest

import (
	"context"
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"mobula"
	"mobula/chaos"
	"mobula/internal/errs"
	"mobula/internal/testkit"
)

// at tells on which node it runs.
var at = mobula.Register0("mobulatest/at", func(ctx context.Context) (string, error) {
	rc, err := mobula.GetRuntimeContext(ctx)
	return rc.NodeID, err
})

// stays notes in a directory on which node it runs, and goes on until there is a file "go". It gives the node where it ended.
var stays = mobula.Register1("mobulatest/stays", func(ctx context.Context, dir string) (string, error) {
	rc, err := mobula.GetRuntimeContext(ctx)
	if err != nil {
		return "", err
	}
	if err := os.WriteFile(filepath.Join(dir, rc.NodeID), nil, 0o600); err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go")); err == nil {
			return rc.NodeID, nil
		}
		select {
		case <-time.After(5 * time.Millisecond):
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
})

// noted waits until a task has noted that it runs on a node.
func noted(t *testing.T, dir, id string) {
	t.Helper()
	testkit.Eventually(t, "run on node "+id, func() bool {
		_, err := os.Stat(filepath.Join(dir, id))
		return err == nil
	})
}

func TestACluster(t *testing.T) {
	began := time.Now()
	c := Cluster(t, 3)
	t.Logf("three nodes after %v", time.Since(began))
	ctx := limit(t, c.Connect(1).Context(t.Context()))
	for i := range c.Len() {
		if got, err := at.Go(ctx, mobula.OnNode(c.ID(i))).Get(ctx); err != nil || got != c.ID(i) {
			t.Errorf("a task for node %d, %s, ran on %q, %v", i, c.ID(i), got, err)
		}
	}
}

// A job is closed on a node that it has not used for a while. It is opened there again when it wants something.
func TestAJobComesBackToANode(t *testing.T) {
	c := Cluster(t, 2)
	driver := c.Connect(0)
	ctx := limit(t, driver.Context(t.Context()))
	there := func() {
		if got, err := at.Go(ctx, mobula.OnNode(c.ID(1))).Get(ctx); err != nil || got != c.ID(1) {
			t.Fatalf("a task for node %s ran on %q, %v", c.ID(1), got, err)
		}
	}
	there()
	testkit.Eventually(t, "the job closed, and with it its worker", func() bool {
		all, err := driver.ListWorkers(ctx, mobula.Query{})
		if err != nil {
			t.Fatal(err)
		}
		return !slices.ContainsFunc(all.Rows, func(w mobula.WorkerState) bool { return w.Node == "node1" })
	})
	there()
}

// What ran on a node that is killed runs again elsewhere, and drivers of that node are told.
func TestANodeOfAClusterIsKilled(t *testing.T) {
	c := Cluster(t, 3)
	ctx := limit(t, c.Connect(0).Context(t.Context()))
	there := limit(t, c.Connect(2).Context(t.Context()))
	dir := t.TempDir()
	r := stays.Go(ctx, mobula.V(dir), mobula.PreferNode(c.ID(2)))
	noted(t, dir, c.ID(2))
	began := time.Now()
	c.Kill(2)
	if err := os.WriteFile(filepath.Join(dir, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := r.Get(ctx)
	if err != nil || got != c.ID(0) && got != c.ID(1) {
		t.Errorf("it ended on node %q, %v", got, err)
	}
	t.Logf("it ran again after %v", time.Since(began))
	if _, err := at.Go(there).Get(there); !errors.Is(err, mobula.ErrOwnerDied) {
		t.Errorf("a driver of the killed node: %v", err)
	}
	c.Kill(2) // it is gone already
}

func TestNodesComeAndGo(t *testing.T) {
	c := Cluster(t, 1, mobula.WithCPUs(2))
	ctx := limit(t, c.Connect(0).Context(t.Context()))
	gpu := c.Add(mobula.WithResource("GPU", 1))
	if got, err := at.Go(ctx, mobula.Resources{GPU: 1, CPU: 2}).Get(ctx); err != nil || got != c.ID(gpu) {
		t.Errorf("a task for a GPU ran on %q, %v", got, err)
	}
	c.Stop(gpu)
	if _, err := at.Go(ctx, mobula.OnNode(c.ID(gpu))).Get(ctx); !errors.Is(err, mobula.ErrUnschedulable) {
		t.Errorf("a task for a node that has stopped: %v", err)
	}
	if i := c.Add(); i != 2 || c.Len() != 3 {
		t.Errorf("the next node is %d of %d", i, c.Len())
	}
}

// What no node can run waits for one that can where the driver's node says so, and tells what it waits for.
func TestATaskWaitsForANodeThatCanRunIt(t *testing.T) {
	t.Setenv("MOBULA_WAIT_FOR_NODES", "1h")
	c := Cluster(t, 1, mobula.WithCPUs(2))
	driver := c.Connect(0)
	ctx := limit(t, driver.Context(t.Context()))
	explained := func(r mobula.Ref[string], words string) {
		t.Helper()
		testkit.Eventually(t, words, func() bool {
			ex, err := driver.Explain(ctx, r.ID())
			if err != nil {
				t.Fatal(err)
			}
			return ex.Next != nil && strings.HasPrefix(ex.Next.Summary, "waits up to ") && strings.Contains(ex.Next.Summary, words)
		})
	}
	gpu := at.Go(ctx, mobula.Resources{GPU: 1})
	explained(gpu, "GPU")
	c.Add(mobula.WithCPUs(2))
	explained(gpu, "more for a node that can run it: CPU 1, GPU 1: no node can run it: of 2 nodes 2 with too little GPU")
	third := c.Add(mobula.WithResource("GPU", 1))
	if got, err := gpu.Get(ctx); err != nil || got != c.ID(third) {
		t.Errorf("it ran on %q, %v", got, err)
	}
}

func TestWhatANodeOfAClusterIsNotToldTwice(t *testing.T) {
	c := &Nodes{t: t, dir: t.TempDir(), out: &output{w: t.Output()}}
	for want, opt := range map[string]mobula.StartOption{
		"WithDir":    mobula.WithDir(t.TempDir()),
		"WithFaults": WithFaults(chaos.New(1)),
		"WithPython": mobula.WithPython(),
		"WithCPUs":   mobula.WithCPUs(-1),
	} {
		m := &member{opts: []mobula.StartOption{opt}}
		err := c.startLocked(t.Context(), 0, m)
		if m.node != nil || !errors.Is(err, errs.ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, %v", want, m.node, err)
		}
	}
}

func TestAddressesOfTheLoopbackDiffer(t *testing.T) {
	var all []netip.Addr
	for range 100 {
		all = append(all, address())
	}
	slices.SortFunc(all, netip.Addr.Compare)
	if n := len(slices.Compact(all)); n < 99 {
		t.Errorf("%d of 100 addresses differ", n)
	}
}
