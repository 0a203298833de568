package cluster

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"mobula"
	"mobula/e2e/harness"
	"mobula/internal/netns"
	"mobula/internal/netns/nodes"
	"mobula/internal/testkit"
)

func TestMain(m *testing.M) {
	if mobula.WorkerMain() {
		return
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		_ = os.RemoveAll(built.dir) // a temporary directory
		os.Exit(code)
	}))
}

// built are the executables of this run.
var built struct {
	mu    sync.Mutex
	dir   string            // guarded by mu
	paths map[string]string // by package; guarded by mu
}

// build gives the executable of a package of this module, which is built once.
func build(t *testing.T, pkg string) string {
	t.Helper()
	if pkg == "cmd/mobula" && os.Getenv("MOBULA_BINARY") != "" {
		return os.Getenv("MOBULA_BINARY")
	}
	built.mu.Lock()
	defer built.mu.Unlock()
	if path, ok := built.paths[pkg]; ok {
		return path
	}
	if built.dir == "" {
		dir, err := os.MkdirTemp("", "mobula-e2e-") //nolint:usetesting // it outlives the test
		must(t, err)
		built.dir, built.paths = dir, make(map[string]string)
	}
	path := filepath.Join(built.dir, filepath.Base(pkg))
	cmd := exec.Command("go", "build", "-o", path, "./"+pkg)
	cmd.Dir, cmd.Env = filepath.Join("..", ".."), append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build %s: %v\n%s", pkg, err, out)
	}
	built.paths[pkg] = path
	return path
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// network makes hosts that end with the test.
func network(t *testing.T, hosts int) []*netns.Host {
	t.Helper()
	n, err := netns.New(t.Context(), hosts)
	if errors.Is(err, netns.ErrUnable) {
		t.Skip(err)
	}
	must(t, err)
	t.Cleanup(func() {
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	})
	return n.Hosts
}

// holds compares what took so long with what the product promises, in the stress run: beside other programs the machine is slower than it allows for.
func holds(t *testing.T, what string, took, most time.Duration) {
	t.Helper()
	t.Logf("%s takes %v, want at most %v", what, took, most)
	if harness.Stress && took > most {
		t.Errorf("%s takes %v, want at most %v", what, took, most)
	}
}

// start starts a node on each host. What they logged last is shown if the test fails.
func start(t *testing.T, hosts []*netns.Host, args ...string) *nodes.Cluster {
	t.Helper()
	return startAs(t, false, hosts, args...)
}

// startAs starts nodes likewise, which keep their stores or do not.
func startAs(t *testing.T, keep bool, hosts []*netns.Host, args ...string) *nodes.Cluster {
	t.Helper()
	ctx := testkit.Within(t)
	c, err := nodes.Start(ctx, nodes.Settings{
		Mobula: build(t, "cmd/mobula"), Folder: harness.TempDir(t), Args: append([]string{"--store-size", "64MiB", "--cpus", "2"}, args...), Keep: keep,
	}, hosts...)
	must(t, err)
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		for _, n := range c.Nodes() {
			if t.Failed() {
				t.Logf("node %s on %v:\n%s", n.Name, n.Host.Addr, n.Log())
			}
		}
	})
	return c
}

// connect makes this process a driver beside the first node, which gives work to all others from the start. The context is the driver's.
func connect(t *testing.T, ctx context.Context, all *nodes.Cluster) (context.Context, *mobula.Cluster) { //nolint:revive // t comes first
	t.Helper()
	return connectAt(t, ctx, all.Nodes()[0], all)
}

// connectAt makes this process a driver beside a node, likewise.
func connectAt(t *testing.T, ctx context.Context, at *nodes.Node, all *nodes.Cluster) (context.Context, *mobula.Cluster) { //nolint:revive // t comes first
	t.Helper()
	c, err := mobula.Connect(ctx, at.Address)
	must(t, err)
	t.Cleanup(func() {
		if err := c.Close(context.WithoutCancel(ctx)); err != nil {
			t.Errorf("close of the driver: %v", err)
		}
	})
	ctx = c.Context(ctx)
	for _, n := range all.Nodes() {
		id := idOf(t, ctx, n)
		if at, err := here.Go(ctx, mobula.OnNode(id)).Get(ctx); err != nil || at != id {
			t.Fatalf("a task on node %s, which is up, ran on %q: %v", id, at, err)
		}
	}
	return ctx, c
}

// idOf is the id by which tasks may choose the node.
func idOf(t *testing.T, ctx context.Context, n *nodes.Node) string { //nolint:revive // t comes first
	t.Helper()
	var s struct{ Labels map[string]string }
	must(t, n.Ask(ctx, &s, "status"))
	id := s.Labels["mobula.io/node-id"]
	if id == "" {
		t.Fatalf("the node on %v does not say its id", n.Host.Addr)
	}
	return id
}

// retried is how many attempts of the driver's tasks were made again.
func retried(t *testing.T, ctx context.Context, c *mobula.Cluster) (n uint64) { //nolint:revive // t comes first
	t.Helper()
	s, err := c.Status(ctx)
	must(t, err)
	for _, j := range s.Jobs {
		n += j.Retried
	}
	return n
}
