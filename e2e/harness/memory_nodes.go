package harness

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"mobula"
	"mobula/internal/home/register"
	"mobula/internal/ids"
	"mobula/internal/node"
	"mobula/internal/steady"
	"mobula/internal/testkit"
	remoteshell "mobula/remote/shell"
	transfershell "mobula/remote/transfer/shell"
)

// homes gives each directory the next home.
type homes struct {
	mu   sync.Mutex
	rows map[string]register.Row // guarded by mu
}

func (h *homes) Begin(_ context.Context, c register.Claim) (register.Row, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	row, known := h.rows[c.Identity]
	if !known {
		h.rows[c.Identity] = register.First(ids.Home(len(h.rows)+1), c)
		return h.rows[c.Identity], nil
	}
	next, err := row.Next(c)
	if err == nil {
		h.rows[c.Identity] = next
	}
	return next, err
}

// StartNodes runs nodes with worker processes in this process, which talk over a network in memory.
func StartNodes(t *testing.T, cpus ...float64) []*node.Node {
	t.Helper()
	return StartNodesWith(t, func(int, *node.Config) {}, cpus...)
}

// StartNodesWith lets a test change what each node is started with.
func StartNodesWith(t *testing.T, change func(i int, cfg *node.Config), cpus ...float64) []*node.Node {
	t.Helper()
	net, pipes, reg := remoteshell.NewMemory(), transfershell.NewPipes(), &homes{rows: make(map[string]register.Row)}
	var nodes []*node.Node
	for i, n := range cpus {
		self := ids.Home(i + 1)
		transport, err := net.Listen(self.String())
		if err != nil {
			t.Fatal(err)
		}
		var others []ids.Home
		for k := range cpus {
			if other := ids.Home(k + 1); other != self {
				others = append(others, other)
			}
		}
		cfg := node.Config{
			Name: fmt.Sprintf("n%v", self), Dir: filepath.Join(TempDir(t), "n"+self.String()), CPUs: n, StoreBytes: 64 << 20, Processes: true, NoGCS: true,
			Logger: slog.New(slog.NewTextHandler(t.Output(), nil)),
			Cluster: &node.Cluster{
				Name: "test", Register: reg, Transport: transport, Objects: pipes.Node(self),
				Address: func(_ context.Context, h ids.Home) (string, error) { return h.String(), nil },
				Verify:  func(tls.ConnectionState, ids.Home) error { return nil },
				Others:  func() []ids.Home { return others },
			},
		}
		change(i, &cfg)
		x, err := node.Start(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			ctx, cancel := context.WithTimeout(context.Background(), testkit.Patience())
			defer cancel()
			if err := x.Close(ctx); err != nil {
				t.Error(err)
			}
		})
		nodes = append(nodes, x)
	}
	return nodes
}

// StartNodesApart starts nodes of which the second one's clock is ahead by an hour, and the third one's behind by half an hour.
func StartNodesApart(t *testing.T, cpus ...float64) []*node.Node {
	t.Helper()
	return StartNodesWith(t, func(i int, cfg *node.Config) {
		cfg.Clock = steady.Of(steady.New().Offset() + []int64{0, int64(time.Hour), -int64(time.Hour) / 2}[i])
	}, cpus...)
}

// ConnectTo joins a node as a driver.
func ConnectTo(t *testing.T, n *node.Node) (context.Context, *mobula.Cluster) {
	t.Helper()
	c, err := mobula.Connect(t.Context(), n.Address())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	ctx, cancel := context.WithTimeout(c.Context(t.Context()), testkit.Patience())
	t.Cleanup(cancel)
	return ctx, c
}

// NodeOfWorker is the address of the node that started this process.
func NodeOfWorker() (string, error) {
	env, err := os.ReadFile("/proc/self/environ")
	for kv := range strings.SplitSeq(string(env), "\x00") {
		if at, ok := strings.CutPrefix(kv, "MOBULA_WORKER_SOCKET="); ok {
			return at, nil
		}
	}
	return "", err
}

// Where takes its time, and tells on which node it ran.
var Where = mobula.Register1("e2e/where", func(ctx context.Context, ms int) (string, error) {
	select {
	case <-time.After(time.Duration(ms) * time.Millisecond):
		return NodeOfWorker()
	case <-ctx.Done():
		return "", ctx.Err()
	}
})
