package shell

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"mobula/actors"
	"mobula/internal/ids"
	"mobula/internal/testkit"
	"mobula/remote"
	"mobula/remote/membership"
	"mobula/remote/membership/memnet"
)

func TestMain(m *testing.M) {
	if to := os.Getenv(processEnv); to != "" {
		process(to)
		return
	}
	code := m.Run()
	if code == 0 {
		// A probe of memberlist's that is under way at the end waits for its time-out: a second, and longer where the node was late.
		err := goleak.Find()
		for end := time.Now().Add(testkit.Patience()); err != nil && time.Now().Before(end); {
			err = goleak.Find()
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

var testKey = bytes.Repeat([]byte{7}, 32)

func life(home ids.Home, epoch uint64) remote.Life { return remote.Life{Home: home, Epoch: epoch} }

// testNode is a node, and what it was told.
type testNode struct {
	*Membership
	t       *testing.T
	sys     *actors.System
	changed chan struct{} // capacity 1: more was told

	mu      sync.Mutex
	notices []membership.Notice
	accused []membership.Accuse
}

// tryStart starts a node with this life.
func tryStart(t *testing.T, l remote.Life, set ...func(*Config)) (*testNode, error) {
	t.Helper()
	n := &testNode{t: t, sys: actors.NewSystem(actors.Config{}), changed: make(chan struct{}, 1)}
	cfg := Config{
		Core: membership.DefaultConfig(membership.Node{
			Life: l, Identity: fmt.Sprint("id", l.Home), Release: "test", Protocol: 1,
			Addresses: membership.Addresses{Message: fmt.Sprintf("10.0.0.%d:2", l.Home), Transfer: fmt.Sprintf("10.0.0.%d:3", l.Home)},
		}),
		Cluster: "test", Bind: "127.0.0.1:0", Keys: [][]byte{testKey},
		Follow: func(f membership.Notice) { n.note(func() { n.notices = append(n.notices, f) }) },
		Accuse: func(f membership.Accuse) { n.note(func() { n.accused = append(n.accused, f) }) },
	}
	for _, f := range set {
		f(&cfg)
	}
	var err error
	n.Membership, err = Start(n.sys, cfg)
	t.Cleanup(n.kill)
	return n, err
}

func start(t *testing.T, l remote.Life, set ...func(*Config)) *testNode {
	t.Helper()
	n, err := tryStart(t, l, set...)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// on has a node gossip over a network in this process.
func on(t *testing.T, net *memnet.Network, address string) func(*Config) {
	return func(c *Config) {
		end, err := net.Listen(address)
		if err != nil {
			t.Fatal(err)
		}
		c.Transport = end
	}
}

// at is the address of a node in such a network.
func at(i int) string { return fmt.Sprintf("10.0.%d.%d:1", i/200, 1+i%200) }

// kill ends the node without a word. It may be called again.
func (n *testNode) kill() {
	ctx, cancel := context.WithTimeout(context.Background(), testkit.Patience())
	defer cancel()
	if err := n.sys.StopTree(ctx); err != nil {
		n.t.Error(err)
	}
}

func (n *testNode) note(f func()) {
	n.mu.Lock()
	f()
	n.mu.Unlock()
	select {
	case n.changed <- struct{}{}:
	default:
	}
}

// told gives the notices of a kind.
func told[N membership.Notice](n *testNode) (out []N) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, f := range n.notices {
		if f, ok := f.(N); ok {
			out = append(out, f)
		}
	}
	return out
}

// until waits until something is true of what the node was told.
func (n *testNode) until(ctx context.Context, what string, is func() bool) {
	n.t.Helper()
	for !is() {
		select {
		case <-n.changed:
		case <-ctx.Done():
			n.mu.Lock()
			defer n.mu.Unlock()
			n.t.Fatalf("node %v: %s: told %+v", n.self, what, n.notices)
		}
	}
}

// homes gives the nodes in a state.
func (n *testNode) homes(ctx context.Context, s membership.State) (out []ids.Home) {
	n.t.Helper()
	all, err := n.Members(ctx)
	if err != nil {
		n.t.Fatal(err)
	}
	for _, m := range all {
		if m.State == s {
			out = append(out, m.Node.Home)
		}
	}
	return out
}

// sees waits until the node has these others, and itself, alive.
func (n *testNode) sees(ctx context.Context, homes ...ids.Home) {
	n.t.Helper()
	want := append([]ids.Home{n.self.Home}, homes...)
	slices.Sort(want)
	n.until(ctx, fmt.Sprintf("wants %v alive", want), func() bool { return slices.Equal(n.homes(ctx, membership.Alive), want) })
}

// join joins the cluster of another node.
func (n *testNode) join(ctx context.Context, to *testNode) {
	n.t.Helper()
	if _, err := n.Join(ctx, []string{to.Address()}); err != nil {
		n.t.Fatal(err)
	}
}

// within is a context of so much time of a bubble.
func within(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), d)
	t.Cleanup(cancel)
	return ctx
}

// sawLine is a log that does something at each record that begins with a text.
func sawLine(begin string, do func()) slog.Handler { return lineHandler{begin, do} }

type lineHandler struct {
	begin string
	do    func()
}

func (lineHandler) Enabled(context.Context, slog.Level) bool { return true }

func (h lineHandler) Handle(_ context.Context, r slog.Record) error {
	if strings.HasPrefix(r.Message, h.begin) {
		h.do()
	}
	return nil
}

func (h lineHandler) WithAttrs([]slog.Attr) slog.Handler { return h }
func (h lineHandler) WithGroup(string) slog.Handler      { return h }
