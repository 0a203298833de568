package faults

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"mobula"
	"mobula/e2e/harness"
	"mobula/gcs/gcstest"
	"mobula/internal/errs"
	"mobula/internal/node"
	"mobula/internal/testkit"
	"mobula/internal/trust"
	"mobula/remote/membership"
)

// startCluster runs n nodes, the first of which founds the cluster.
func startCluster(t *testing.T, n int) (nodes []*node.Node) {
	t.Helper()
	nodes = append(nodes, harness.StartWired(t, harness.WiredConfig(t, "n1")))
	for i := 2; i <= n; i++ {
		nodes = append(nodes, harness.StartWired(t, harness.JoinTo(t, nodes[0], harness.WiredConfig(t, fmt.Sprintf("n%d", i)), trust.Data)))
	}
	return nodes
}

// A cluster from nothing: a node founds it, others join by token over TLS, and tasks and values move between them.
func TestAClusterFromNothing(t *testing.T) {
	nodes := startCluster(t, 3)
	ctx, c := harness.ConnectTo(t, nodes[1])
	harness.RanOn(ctx, t, nodes)
	if s, err := c.Status(ctx); err != nil || s.Cluster == "" || s.Role != "data" || s.Reached != nodes[1].ClusterAddress() {
		t.Errorf("its status is %+v, %v", s, err)
	}
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

// A node that has joined comes back to its cluster by what its directory has, without a token, and gets work again. So does the one that founded the cluster. Each
// listens where it has listened before, and nowhere else.
func TestANodeComesBackToItsCluster(t *testing.T) {
	founder := harness.WiredConfig(t, "n1")
	first := harness.StartWired(t, founder)
	cfg := harness.JoinTo(t, first, harness.WiredConfig(t, "n2"), trust.Data)
	second := harness.StartWired(t, cfg)
	ctx, _ := harness.ConnectTo(t, first)
	harness.RanOn(ctx, t, []*node.Node{first, second})
	harness.StopNode(t, second)
	at := second.ClusterAddress()
	cfg.Wires = &node.Wires{}
	second = harness.StartWired(t, cfg)
	harness.RanOn(ctx, t, []*node.Node{first, second})
	if second.ClusterAddress() != at {
		t.Errorf("it was at %s, and is at %s", at, second.ClusterAddress())
	}
	at = first.ClusterAddress()
	harness.StopNode(t, first)
	founder.Wires = &node.Wires{}
	first = harness.StartWired(t, founder)
	if first.ClusterAddress() != at {
		t.Errorf("the founder was at %s, and is at %s", at, first.ClusterAddress())
	}
	there, _ := harness.ConnectTo(t, first)
	harness.RanOn(there, t, []*node.Node{first, second})
}

// A program elsewhere joins with a node of its own, which runs no work: its tasks run on the cluster's nodes.
func TestADriverJoinsFromElsewhere(t *testing.T) {
	first := harness.StartWired(t, harness.WiredConfig(t, "n1"))
	token, err := first.MakeToken(t.Context(), trust.Driver, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience())
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
		refs = append(refs, harness.Where.Go(c.Context(ctx), mobula.V(10)))
	}
	at, err := mobula.GetAll(c.Context(ctx), refs)
	if err != nil {
		t.Fatal(err)
	}
	if slices.ContainsFunc(at, func(a string) bool { return a != first.Address() }) {
		t.Errorf("its tasks ran at %v, want %s", at, first.Address())
	}
}

// A driver's node is up as soon as it has reached the nodes that run work: it does not wait until heartbeats have told that they live.
func TestADriverWaitsForNoHeartbeat(t *testing.T) {
	first := harness.StartWired(t, harness.WiredConfig(t, "n1"))
	testkit.Eventually(t, "a driver's node is up between two heartbeats", func() bool { // at some time, on a machine with other work
		cfg := harness.JoinTo(t, first, harness.WiredConfig(t, "d"), trust.Driver)
		ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience())
		defer cancel()
		began := time.Now()
		n, err := node.Start(ctx, cfg)
		if err != nil {
			t.Fatal(err)
		}
		took := time.Since(began)
		harness.StopNode(t, n)
		return took < membership.DefaultJudgeConfig().Beat
	})
}

// Who has no token, or a wrong one, or is not reached, does not get in, and is told why.
func TestStrangersDoNotJoin(t *testing.T) {
	first, other := harness.StartWired(t, harness.WiredConfig(t, "n1")), harness.StartWired(t, harness.WiredConfig(t, "o1"))
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
		cfg := harness.WiredConfig(t, "n2")
		cfg.Wires.Join, cfg.Wires.Token, cfg.Wires.Advertise = []string{first.ClusterAddress()}, c.token, c.advertise
		if n, err := node.Start(t.Context(), cfg); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", c.what, err)
			if err == nil {
				harness.StopNode(t, n)
			}
		}
	}
}

// Nodes may have the cluster's tables in NATS servers that others run: they join, work, and are found dead likewise. A node that looks for the tables
// elsewhere than the cluster has them is refused.
func TestAClusterWhoseTablesAreElsewhere(t *testing.T) {
	url := gcstest.Server(t)
	at := func(name string) node.Config {
		cfg := harness.WiredConfig(t, name)
		cfg.GCS = []string{url}
		return cfg
	}
	first := harness.StartWired(t, at("n1"))
	second := harness.StartWired(t, harness.JoinTo(t, first, at("n2"), trust.ControlPlane))
	third := harness.StartWired(t, harness.JoinTo(t, second, at("n3"), trust.Data))
	ctx, _ := harness.ConnectTo(t, third)
	harness.RanOn(ctx, t, []*node.Node{first, second, third})
	own := harness.StartWired(t, harness.WiredConfig(t, "o1"))
	for what, cfg := range map[string]node.Config{
		"--gcs, as on": harness.JoinTo(t, first, harness.WiredConfig(t, "n4"), trust.Data), "without --gcs": harness.JoinTo(t, own, at("n4"), trust.Data),
	} {
		if n, err := node.Start(t.Context(), cfg); !errors.Is(err, errs.ErrInvalid) || !strings.Contains(err.Error(), what) {
			t.Errorf("want an error with %q: %v", what, err)
			if err == nil {
				harness.StopNode(t, n)
			}
		}
	}
}

// A control-plane server without CPUs runs nobody's tasks or actors: all run on the data node, those of a driver beside the server too, and those that ask for no CPU. Only
// what names the server and asks for no CPU runs there.
func TestAServerWithoutCPUsRunsNoWork(t *testing.T) {
	cfg := harness.WiredConfig(t, "n1")
	cfg.CPUs = -1
	first := harness.StartWired(t, cfg)
	second := harness.StartWired(t, harness.JoinTo(t, first, harness.WiredConfig(t, "n2"), trust.Data))
	ctx, _ := harness.ConnectTo(t, first)
	var refs []mobula.Ref[string]
	for range 8 {
		refs = append(refs, harness.Where.Go(ctx, mobula.V(10)), harness.Where.Go(ctx, mobula.V(10), mobula.Resources{CPU: mobula.NoCPU}))
	}
	at, err := mobula.GetAll(ctx, refs)
	if err != nil {
		t.Fatal(err)
	}
	if slices.ContainsFunc(at, func(a string) bool { return a != second.Address() }) {
		t.Errorf("tasks ran at %v, want %s", at, second.Address())
	}
	on := mobula.OnNode(first.ID())
	if at, err := harness.Where.Go(ctx, mobula.V(10), on, mobula.Resources{CPU: mobula.NoCPU}).Get(ctx); err != nil || at != first.Address() {
		t.Errorf("a task for no CPU on the server ran at %q, %v", at, err)
	}
	if _, err := harness.Where.Go(ctx, mobula.V(10), on).Get(ctx); !errors.Is(err, mobula.ErrUnschedulable) {
		t.Errorf("a task for one CPU on the server: %v", err)
	}
}
