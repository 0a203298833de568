package e2e

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"mobula"
	"mobula/gcs/gcstest"
	"mobula/internal/errs"
	"mobula/internal/node"
	_ "mobula/internal/node/gossip/memberlist" // nodes gossip
	"mobula/internal/trust"
)

// freePorts are ports of the loopback that nobody has now.
func freePorts(t *testing.T, n int) (out []int) {
	t.Helper()
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		out = append(out, l.Addr().(*net.TCPAddr).Port)
	}
	return out
}

// wiredConfig is a node of a cluster on the loopback, with worker processes.
func wiredConfig(t *testing.T, name string) node.Config {
	p := freePorts(t, 4)
	return node.Config{
		Name: name, Dir: filepath.Join(tempDir(t), name), Keep: true, CPUs: 1, StoreBytes: 64 << 20, Processes: true,
		Logger: slog.New(slog.NewTextHandler(t.Output(), nil)).With("node", name),
		Wires:  &node.Wires{Cluster: "test", Listen: "127.0.0.1:" + strconv.Itoa(p[0]), GossipPort: p[1], GCSPort: p[2], RoutesPort: p[3]},
	}
}

// startWired runs a node in this process.
func startWired(t *testing.T, cfg node.Config) *node.Node {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	n, err := node.Start(ctx, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stopNode(t, n) })
	return n
}

func stopNode(t *testing.T, n *node.Node) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if err := n.Close(ctx); err != nil {
		t.Error(err)
	}
}

// joinTo has a configuration join a node, with a token made there.
func joinTo(t *testing.T, first *node.Node, cfg node.Config, role trust.Role) node.Config {
	t.Helper()
	made, err := first.MakeToken(t.Context(), role, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	cfg.Wires.Join, cfg.Wires.Token, cfg.Wires.Role = []string{first.ClusterAddress()}, made, role
	return cfg
}

// startCluster runs n nodes, the first of which founds the cluster.
func startCluster(t *testing.T, n int) (nodes []*node.Node) {
	t.Helper()
	nodes = append(nodes, startWired(t, wiredConfig(t, "n1")))
	for i := 2; i <= n; i++ {
		nodes = append(nodes, startWired(t, joinTo(t, nodes[0], wiredConfig(t, fmt.Sprintf("n%d", i)), trust.Data)))
	}
	return nodes
}

// ranOn runs tasks until each of the nodes has had one.
func ranOn(ctx context.Context, t *testing.T, nodes []*node.Node) {
	t.Helper()
	for {
		var refs []mobula.Ref[string]
		for range 3 * len(nodes) {
			refs = append(refs, where.Go(ctx, mobula.V(100)))
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

// A cluster from nothing: a node founds it, others join by token over TLS, and tasks and values move between them.
func TestAClusterFromNothing(t *testing.T) {
	nodes := startCluster(t, 3)
	ctx, _ := connectTo(t, nodes[1])
	ranOn(ctx, t, nodes)
	var refs []mobula.Ref[[]byte]
	want := 0
	for i := range 9 {
		refs = append(refs, bigThere.Go(ctx, mobula.V(byte(i))))
		want += 2 * i
	}
	if got, err := sumOf.Go(ctx, refs).Get(ctx); err != nil || got != want {
		t.Fatalf("the sum is %d, %v, want %d", got, err, want)
	}
}

// A node that has joined comes back to its cluster by what its directory has, without a token, and gets work again.
func TestANodeComesBackToItsCluster(t *testing.T) {
	first := startWired(t, wiredConfig(t, "n1"))
	cfg := joinTo(t, first, wiredConfig(t, "n2"), trust.Data)
	second := startWired(t, cfg)
	ctx, _ := connectTo(t, first)
	ranOn(ctx, t, []*node.Node{first, second})
	stopNode(t, second)
	cfg.Wires.Join, cfg.Wires.Token, cfg.Wires.Role = nil, "", ""
	ranOn(ctx, t, []*node.Node{first, startWired(t, cfg)})
}

// A program elsewhere joins with a node of its own, which runs no work: its tasks run on the cluster's nodes.
func TestADriverJoinsFromElsewhere(t *testing.T) {
	first := startWired(t, wiredConfig(t, "n1"))
	token, err := first.MakeToken(t.Context(), trust.Driver, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	c, err := mobula.Connect(ctx, first.ClusterAddress(), mobula.ConnectToken(token), mobula.ConnectLogger(slog.New(slog.NewTextHandler(t.Output(), nil))))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := c.Close(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	var refs []mobula.Ref[string]
	for range 8 {
		refs = append(refs, where.Go(c.Context(ctx), mobula.V(10)))
	}
	at, err := mobula.GetAll(c.Context(ctx), refs)
	if err != nil {
		t.Fatal(err)
	}
	if slices.ContainsFunc(at, func(a string) bool { return a != first.Address() }) {
		t.Errorf("its tasks ran at %v, want %s", at, first.Address())
	}
}

// Who has no token, or a wrong one, or is not reached, does not get in, and is told why.
func TestStrangersDoNotJoin(t *testing.T) {
	first, other := startWired(t, wiredConfig(t, "n1")), startWired(t, wiredConfig(t, "o1"))
	foreign, err := other.MakeToken(t.Context(), trust.Data, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	short, err := first.MakeToken(t.Context(), trust.Data, time.Nanosecond)
	if err != nil {
		t.Fatal(err)
	}
	good, err := first.MakeToken(t.Context(), trust.Data, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		what, token, advertise string
		want                   error
	}{
		{"no token", "", "", errs.ErrInvalid},
		{"a token of another cluster", foreign, "", trust.ErrAuthority},
		{"a token that has expired", short, "", trust.ErrTokenExpired},
		{"an address at which nobody reaches it, as behind a NAT", good, "127.0.0.77", trust.ErrUnreachable},
	} {
		cfg := wiredConfig(t, "n2")
		cfg.Wires.Join, cfg.Wires.Token, cfg.Wires.Advertise = []string{first.ClusterAddress()}, c.token, c.advertise
		if n, err := node.Start(t.Context(), cfg); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", c.what, err)
			if err == nil {
				stopNode(t, n)
			}
		}
	}
}

// Nodes may have the cluster's tables in NATS servers that others run: they join, work, and are found dead likewise. A node that looks for the tables
// elsewhere than the cluster has them is refused.
func TestAClusterWhoseTablesAreElsewhere(t *testing.T) {
	url := gcstest.Server(t)
	at := func(name string) node.Config {
		cfg := wiredConfig(t, name)
		cfg.GCS = []string{url}
		return cfg
	}
	first := startWired(t, at("n1"))
	second := startWired(t, joinTo(t, first, at("n2"), trust.ControlPlane))
	third := startWired(t, joinTo(t, second, at("n3"), trust.Data))
	ctx, _ := connectTo(t, third)
	ranOn(ctx, t, []*node.Node{first, second, third})
	own := startWired(t, wiredConfig(t, "o1"))
	for what, cfg := range map[string]node.Config{
		"--gcs, as on": joinTo(t, first, wiredConfig(t, "n4"), trust.Data), "without --gcs": joinTo(t, own, at("n4"), trust.Data),
	} {
		if n, err := node.Start(t.Context(), cfg); !errors.Is(err, errs.ErrInvalid) || !strings.Contains(err.Error(), what) {
			t.Errorf("want an error with %q: %v", what, err)
			if err == nil {
				stopNode(t, n)
			}
		}
	}
}
