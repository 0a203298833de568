package harness

import (
	"context"
	"log/slog"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"mobula"
	"mobula/internal/node"
	_ "mobula/internal/node/gossip/memberlist" // nodes gossip
	"mobula/internal/testkit"
	"mobula/internal/trust"
)

// WiredConfig is a node of a cluster on the loopback, with worker processes.
func WiredConfig(t *testing.T, name string) node.Config {
	p := testkit.Ports(t, 4)
	return node.Config{
		Name: name, Dir: filepath.Join(programDir(t), name), Keep: true, CPUs: 1, StoreBytes: 64 << 20, Processes: true,
		Logger: slog.New(slog.NewTextHandler(t.Output(), nil)).With("node", name),
		Wires:  &node.Wires{Cluster: "test", Listen: "127.0.0.1:" + strconv.Itoa(p), GossipPort: p + 1, GCSPort: p + 2, RoutesPort: p + 3},
	}
}

// programDir is a directory of this process: what its nodes leave goes with the next start of a node, should the tests be killed.
func programDir(t *testing.T) string {
	t.Helper()
	dir, remove, err := node.ProgramDir()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := remove(); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// StartWired runs a node in this process.
func StartWired(t *testing.T, cfg node.Config) *node.Node {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience())
	defer cancel()
	n, err := node.Start(ctx, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { StopNode(t, n) })
	return n
}

// StopNode ends a node in order.
func StopNode(t *testing.T, n *node.Node) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), testkit.Patience())
	defer cancel()
	if err := n.Close(ctx); err != nil {
		t.Error(err)
	}
}

// JoinTo has a configuration join a node, with a token made there.
func JoinTo(t *testing.T, first *node.Node, cfg node.Config, role trust.Role) node.Config {
	t.Helper()
	made, err := first.MakeToken(t.Context(), role, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	cfg.Wires.Join, cfg.Wires.Token, cfg.Wires.Role = []string{first.ClusterAddress()}, made, role
	return cfg
}

// RanOn runs tasks until each of the nodes has had one.
func RanOn(ctx context.Context, t *testing.T, nodes []*node.Node) {
	t.Helper()
	for {
		var refs []mobula.Ref[string]
		for range 3 * len(nodes) {
			refs = append(refs, Where.Go(ctx, mobula.V(100)))
		}
		at, err := mobula.GetAll(ctx, refs)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.ContainsFunc(nodes, func(n *node.Node) bool { return !slices.Contains(at, n.Address()) }) {
			return
		}
	}
}
