package faults

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mobula"
	"mobula/e2e/harness"
	"mobula/internal/node"
)

// The node process is killed and started again: what was sealed is there again, what ran
// finishes, and the driver notices nothing but the time it takes.
func TestNodeIsKilled(t *testing.T) {
	ctx, cancel := harness.Limit(t)
	defer cancel()
	cfg := harness.NodeConfig{Dir: harness.TempDir(t), CPUs: 2, Store: 32 << 20, StoreDir: harness.TempDir(t)}
	p := harness.MustLaunch(t, cfg)
	_, ctx = harness.Connect(t, ctx, p)

	// Four times the store: some in memory, most in spill files.
	var puts, made []mobula.Ref[[]float64]
	const n = 1 << 17
	for i := range 64 {
		xs := make([]float64, n)
		for j := range xs {
			xs[j] = float64(i)
		}
		ref, err := mobula.Put(ctx, xs)
		if err != nil {
			t.Fatalf("put %d: %v", i, err)
		}
		puts = append(puts, ref)
		made = append(made, harness.Fill.Go(ctx, mobula.V(n), mobula.V(float64(i))))
	}
	if _, rest, err := mobula.Wait(ctx, made, len(made)); err != nil || len(rest) > 0 {
		t.Fatalf("%d not made: %v", len(rest), err)
	}
	var running []mobula.Ref[int]
	for range 20 {
		running = append(running, harness.Sleepy.Go(ctx, mobula.V(100), mobula.V(7)))
	}
	if _, _, err := mobula.Wait(ctx, running, 1); err != nil {
		t.Fatal(err)
	}
	p.Kill(t)
	p = harness.MustLaunch(t, cfg)

	for i := range puts {
		for _, refs := range [][]mobula.Ref[[]float64]{puts, made} {
			if got, err := harness.Sum.Go(ctx, refs[i]).Get(ctx); err != nil || got != float64(i*n) {
				t.Fatalf("object %d after the restart: sum %v, %v", i, got, err)
			}
		}
	}
	got, err := mobula.GetAll(ctx, running)
	if err != nil {
		t.Fatalf("what ran: %v", err)
	}
	for i, v := range got {
		if v != 7 {
			t.Errorf("task %d gave %d", i, v)
		}
	}
	p.Kill(t) // once more, with nothing going on
	harness.MustLaunch(t, cfg)
	if got, err := harness.Sum.Go(ctx, puts[3]).Get(ctx); err != nil || got != 3*n {
		t.Errorf("after a second restart: %v, %v", got, err)
	}
}

// Two nodes of one directory: one of them has it, the other says why it does not start.
func TestFaultTwoNodesAtOnce(t *testing.T) {
	ctx, cancel := harness.Limit(t)
	defer cancel()
	cfg := harness.NodeConfig{Dir: harness.TempDir(t), CPUs: 1, Store: 16 << 20, StoreDir: harness.TempDir(t)}
	type result struct {
		p   *harness.NodeProcess
		err error
	}
	results := make(chan result, 2)
	for range 2 {
		go func() {
			p, err := harness.Launch(t, cfg)
			results <- result{p, err}
		}()
	}
	var up []*harness.NodeProcess
	var failed []error
	for range 2 {
		select {
		case r := <-results:
			if r.err != nil {
				failed = append(failed, r.err)
			} else {
				up = append(up, r.p)
			}
		case <-ctx.Done():
			t.Fatal("two nodes were started and did not say what became of them")
		}
	}
	if len(up) != 1 || len(failed) != 1 {
		t.Fatalf("%d of 2 nodes run; the others say %v", len(up), failed)
	}
	if text := failed[0].Error(); !strings.Contains(text, "in use") && !strings.Contains(text, "running") {
		t.Errorf("the second node says %q, which does not tell that the first one runs", text)
	}
	_, ctx = harness.Connect(t, ctx, up[0])
	if v, err := harness.Add.Go(ctx, mobula.V(1.0), mobula.V(2.0)).Get(ctx); err != nil || v != 3 {
		t.Errorf("the one that runs: %v, %v", v, err)
	}
}

// A driver that is killed leaves nothing behind: no process, no bytes in the store, no file.
func TestDriverIsKilled(t *testing.T) {
	ctx, cancel := harness.Limit(t)
	defer cancel()
	cfg := harness.NodeConfig{Dir: harness.TempDir(t), CPUs: 2, Store: 16 << 20, StoreDir: harness.TempDir(t)}
	p := harness.MustLaunch(t, cfg)
	d := harness.LaunchDriver(t, p.Address, "hoard")
	harness.Eventually(t, ctx, "the driver's workers run", func() bool { return len(harness.WorkersOf(p.Address)) > 0 })
	d.Kill(t)
	harness.Eventually(t, ctx, "the driver's workers are gone", func() bool { return len(harness.WorkersOf(p.Address)) == 0 })
	c, ctx := harness.Connect(t, ctx, p)
	storeEmpties(t, ctx, c)
	harness.Eventually(t, ctx, "its files are gone", func() bool {
		return len(harness.FilesOf(cfg.Dir, "owner", "1")) == 0 && len(spilled(cfg.Dir, "spill")) == 0
	})
}

// A node that is stopped in order ends its jobs, and leaves no memory behind.
func TestFaultStoppedNodeLeavesNoMemory(t *testing.T) {
	ctx, cancel := harness.Limit(t)
	defer cancel()
	cfg := harness.NodeConfig{Dir: harness.TempDir(t), CPUs: 1, Store: 16 * harness.MiB, StoreDir: harness.TempDir(t)}
	p := harness.MustLaunch(t, cfg)
	c, ctx := harness.Connect(t, ctx, p)
	ref, err := mobula.Put(ctx, harness.Array(harness.MiB, 7))
	if err != nil {
		t.Fatal(err)
	}
	if len(harness.FilesOf(cfg.StoreDir)) == 0 {
		t.Fatal("the store is somewhere else")
	}
	ref.Release()
	storeEmpties(t, ctx, c)
	p.Stop(t)
	if left := harness.FilesOf(cfg.StoreDir); len(left) > 0 {
		t.Errorf("the node left %v", left)
	}
}

// What a killed node left is cleaned when a node is started again: the segment that nobody
// has, workers, spill files of jobs that are over.
func TestFaultLeftoversOfAKilledNode(t *testing.T) {
	ctx, cancel := harness.Limit(t)
	defer cancel()
	cfg := harness.NodeConfig{Dir: harness.TempDir(t), CPUs: 2, Store: 16 << 20, StoreDir: harness.TempDir(t)}
	p := harness.MustLaunch(t, cfg)
	d := harness.LaunchDriver(t, p.Address, "hoard")
	harness.Eventually(t, ctx, "the driver's workers run", func() bool { return len(harness.WorkersOf(p.Address)) > 0 })
	p.Kill(t)
	d.Kill(t)
	p = harness.MustLaunch(t, cfg)
	harness.Eventually(t, ctx, "the workers of before are gone", func() bool { return len(harness.WorkersOf(p.Address)) == 0 })
	c, ctx := harness.Connect(t, ctx, p)
	storeEmpties(t, ctx, c)
	harness.Eventually(t, ctx, "spill files are gone", func() bool { return len(spilled(cfg.Dir, "spill")) == 0 })
}

// A program with a node inside is killed: its workers go with it, and the next node of the user clears
// away what lies in directories.
func TestFaultLeftoversOfAKilledProgram(t *testing.T) {
	ctx, cancel := harness.Limit(t)
	defer cancel()
	temp, spill := harness.TempDir(t), harness.TempDir(t)
	t.Setenv("TMPDIR", temp)
	d := harness.LaunchDriver(t, harness.Inside+spill, "hoard")
	sockets, err := filepath.Glob(filepath.Join(temp, "*", "node-*", node.SocketName))
	if err != nil || len(sockets) != 1 {
		t.Fatalf("sockets %v, %v", sockets, err)
	}
	dir := filepath.Dir(sockets[0])
	harness.SpillFiles(t, spill)
	if len(harness.WorkersOf(sockets[0])) == 0 {
		t.Error("it has no workers")
	}
	d.Kill(t)
	harness.Eventually(t, ctx, "its workers are gone", func() bool { return len(harness.WorkersOf(sockets[0])) == 0 })
	c, err := mobula.Start(ctx, mobula.WithStore(8*harness.MiB), mobula.WithSpill(spill), mobula.WithLogger(harness.Quiet()))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s is still there: %v", dir, err)
	}
	if files := spilled(spill); len(files) > 0 {
		t.Errorf("spill files are still there: %v", files)
	}
	harness.Works(t, c.Context(ctx))
	if err := c.Close(ctx); err != nil {
		t.Error(err)
	}
	if left := harness.FilesOf(temp); len(left) > 0 {
		t.Errorf("the program that ended in order left %v", left)
	}
}

// storeEmpties waits until the node's store has nothing any more, in memory or spilled.
func storeEmpties(t *testing.T, ctx context.Context, c *mobula.Cluster) {
	t.Helper()
	harness.Eventually(t, ctx, "the store is empty", func() bool {
		s, err := c.Status(ctx)
		if err != nil {
			t.Fatal(err)
		}
		return s.Store.Held == 0 && s.Store.Spilled == 0 && s.Store.Objects == 0
	})
}

// spilled lists the spill files below a directory.
func spilled(elem ...string) []string {
	var files []string
	for _, f := range harness.FilesOf(elem...) {
		if st, err := os.Stat(f); err == nil && st.Size() > 0 && filepath.Base(f) != "lock" {
			files = append(files, fmt.Sprintf("%s (%d)", f, st.Size()))
		}
	}
	return files
}
