package faults

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"mobula"
	"mobula/e2e/harness"
	"mobula/internal/node"
)

// heldUp notes in a directory on which node it runs, and goes on until a file "go" is there.
var heldUp = mobula.Register2("e2e/heldUp", func(ctx context.Context, dir string, i int) (int, error) {
	rc, err := mobula.GetRuntimeContext(ctx)
	if err != nil {
		return 0, err
	}
	if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%d-%s", i, rc.NodeID)), nil, 0o600); err != nil {
		return 0, err
	}
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		if _, err := os.Stat(filepath.Join(dir, "go")); err == nil {
			return i, nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
})

// together runs so many tasks at once, and tells how many of them ran on which node. No lease is left of tasks before.
func together(ctx context.Context, t *testing.T, nodes []*node.Node, n int, opts ...mobula.TaskOption) map[string]int {
	t.Helper()
	harness.Eventually(t, ctx, "no lease left", func() bool { return harness.OwnerStats(t, ctx, nodes[0]).Leases == 0 })
	dir := t.TempDir()
	var refs []mobula.Ref[int]
	for i := range n {
		refs = append(refs, heldUp.Go(ctx, mobula.V(dir), mobula.V(i), opts...))
	}
	at := make(map[string]int)
	harness.Eventually(t, ctx, "all run", func() bool {
		clear(at)
		entries, err := os.ReadDir(dir)
		harness.Must(t, err)
		for _, e := range entries {
			_, id, _ := strings.Cut(e.Name(), "-")
			at[id]++
		}
		return len(entries) == n
	})
	harness.Must(t, os.WriteFile(filepath.Join(dir, "go"), nil, 0o600))
	_, err := mobula.GetAll(ctx, refs)
	harness.Must(t, err)
	return at
}

// wantTogether waits until tasks run so: what the driver's node knows of the others may be a moment old.
func wantTogether(ctx context.Context, t *testing.T, nodes []*node.Node, want map[string]int, opts ...mobula.TaskOption) {
	t.Helper()
	n := 0
	for _, k := range want {
		n += k
	}
	for {
		got := together(ctx, t, nodes, n, opts...)
		if maps.Equal(got, want) {
			return
		}
		t.Logf("of %d tasks with %v so many ran on each node: %v, want %v", n, opts, got, want)
		if ctx.Err() != nil {
			t.Fatal(ctx.Err())
		}
	}
}

// Tasks stay on the driver's node until half of it is in use, go to others until that is so there, and then to the emptiest. Those that ask for no GPU leave the nodes
// alone that have one.
func TestNodesAreFilledToAHalfFirst(t *testing.T) {
	nodes := harness.StartNodes(t, 4, 4, 4)
	ctx, _ := harness.ConnectTo(t, nodes[0])
	meet(ctx, t, nodes)
	wantTogether(ctx, t, nodes, map[string]int{"1": 2})
	wantTogether(ctx, t, nodes, map[string]int{"1": 2, "2": 2, "3": 1})
	wantTogether(ctx, t, nodes, map[string]int{"1": 3, "2": 3, "3": 2})
}

func TestNodesWithAGPUAreSpared(t *testing.T) {
	nodes := harness.StartNodesWith(t, func(i int, cfg *node.Config) {
		if i == 0 {
			cfg.GPUs = 1
		}
	}, 4, 4)
	ctx, _ := harness.ConnectTo(t, nodes[0])
	meet(ctx, t, nodes)
	wantTogether(ctx, t, nodes, map[string]int{"2": 3})
	wantTogether(ctx, t, nodes, map[string]int{"1": 1}, mobula.Resources{GPU: 1})
}

// A node whose store is at 90 % gets no task while another one has room.
func TestANodeWhoseStoreIsFullGetsNothing(t *testing.T) {
	const store = 64 << 20
	nodes := harness.StartNodesWith(t, func(_ int, cfg *node.Config) { cfg.StoreBytes, cfg.SpillThreshold = store, 1 }, 4, 4, 4)
	ctx, _ := harness.ConnectTo(t, nodes[0])
	meet(ctx, t, nodes)
	wantTogether(ctx, t, nodes, map[string]int{"1": 2, "2": 2, "3": 2}, mobula.Spread())
	full := makeBytes.Go(ctx, mobula.V(store*91/100), mobula.OnNode("2"))
	if ready, _, err := mobula.Wait(ctx, []mobula.Ref[[]byte]{full}, 1); err != nil || len(ready) != 1 {
		t.Fatal(ready, err)
	}
	wantTogether(ctx, t, nodes, map[string]int{"1": 3, "3": 3}, mobula.Spread())
	wantTogether(ctx, t, nodes, map[string]int{"1": 2, "3": 2})
	full.Release()
	wantTogether(ctx, t, nodes, map[string]int{"1": 2, "2": 2, "3": 2}, mobula.Spread())
}
