package e2e

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"mobula"
	"mobula/internal/home/register"
	"mobula/internal/ids"
	"mobula/internal/node"
	remoteshell "mobula/remote/shell"
	transfershell "mobula/remote/transfer/shell"
)

// where takes its time, and tells on which node it ran.
var where = mobula.Register1("e2e/where", func(ctx context.Context, ms int) (string, error) {
	select {
	case <-time.After(time.Duration(ms) * time.Millisecond):
		return nodeOfWorker()
	case <-ctx.Done():
		return "", ctx.Err()
	}
})

// nodeOfWorker is the address of the node that started this process.
func nodeOfWorker() (string, error) {
	env, err := os.ReadFile("/proc/self/environ")
	for kv := range strings.SplitSeq(string(env), "\x00") {
		if at, ok := strings.CutPrefix(kv, "MOBULA_WORKER_SOCKET="); ok {
			return at, nil
		}
	}
	return "", err
}

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

// startNodes runs nodes with worker processes in this process, which talk over a network in memory.
func startNodes(t *testing.T, cpus ...float64) []*node.Node {
	t.Helper()
	return startNodesWith(t, func(int, *node.Config) {}, cpus...)
}

// startNodesWith lets a test change what each node is started with.
func startNodesWith(t *testing.T, change func(i int, cfg *node.Config), cpus ...float64) []*node.Node {
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
			Name: fmt.Sprintf("n%v", self), Dir: filepath.Join(tempDir(t), "n"+self.String()), CPUs: n, StoreBytes: 64 << 20, Processes: true, NoGCS: true,
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
			ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
			defer cancel()
			if err := x.Close(ctx); err != nil {
				t.Error(err)
			}
		})
		nodes = append(nodes, x)
	}
	return nodes
}

// connectTo joins a node as a driver.
func connectTo(t *testing.T, n *node.Node) (context.Context, *mobula.Cluster) {
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
	ctx, cancel := context.WithTimeout(c.Context(t.Context()), 60*time.Second)
	t.Cleanup(cancel)
	return ctx, c
}

// Tasks that have no room on the driver's node run on another.
func TestTasksRunOnAnotherNode(t *testing.T) {
	nodes := startNodes(t, 1, 2)
	ctx, _ := connectTo(t, nodes[0])
	spread(t, ctx, where, nodes...)
}

// spread runs tasks of a job, some on each of these nodes, and gives their references.
func spread(t *testing.T, ctx context.Context, task mobula.Func1[int, string], nodes ...*node.Node) (refs []mobula.Ref[string]) { //nolint:revive // t comes first
	t.Helper()
	for range 12 {
		refs = append(refs, task.Go(ctx, mobula.V(300)))
	}
	at, err := mobula.GetAll(ctx, refs)
	if err != nil {
		t.Fatal(err)
	}
	for i, n := range nodes {
		if !slices.Contains(at, n.Address()) {
			t.Fatalf("nothing ran on node %d: %v", i+1, at)
		}
	}
	return refs
}

const bigSize = 1 << 20

// bigThere makes a value that lies in the store of the node where it runs, after a while.
var bigThere = mobula.Register1("e2e/bigThere", func(ctx context.Context, mark byte) ([]byte, error) {
	select {
	case <-time.After(100 * time.Millisecond):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return bytes.Repeat([]byte{mark}, bigSize), nil
})

// sumOf adds up the first and the last bytes of values.
var sumOf = mobula.RegisterVar0("e2e/sumOf", func(_ context.Context, values [][]byte) (int, error) {
	sum := 0
	for _, v := range values {
		if len(v) != bigSize {
			return 0, fmt.Errorf("a value of %d bytes", len(v))
		}
		sum += int(v[0]) + int(v[len(v)-1])
	}
	return sum, nil
})

// nested submits tasks where it runs, and adds up what they make.
var nested = mobula.Register1("e2e/nested", func(ctx context.Context, n int) (int, error) {
	mine, err := mobula.Put(ctx, bytes.Repeat([]byte{1}, bigSize))
	if err != nil {
		return 0, err
	}
	refs := []mobula.Ref[[]byte]{mine}
	for i := range n {
		refs = append(refs, bigThere.Go(ctx, mobula.V(byte(i+1))))
	}
	return sumOf.Go(ctx, refs).Get(ctx)
})

// Values in the store of one node are read on others, as arguments and by gets, by drivers and by workers.
func TestStoredValuesReachOtherNodes(t *testing.T) {
	nodes := startNodes(t, 1, 2, 1)
	ctx, _ := connectTo(t, nodes[0])
	var refs []mobula.Ref[[]byte]
	want := 0
	for i := range 12 {
		refs = append(refs, bigThere.Go(ctx, mobula.V(byte(i))))
		want += 2 * i
	}
	mine, err := mobula.Put(ctx, bytes.Repeat([]byte{50}, bigSize))
	if err != nil {
		t.Fatal(err)
	}
	refs = append(refs, mine)
	want += 100
	var sums []mobula.Ref[int]
	for range 6 {
		sums = append(sums, sumOf.Go(ctx, refs))
	}
	for _, s := range sums {
		if got, err := s.Get(ctx); err != nil || got != want {
			t.Fatalf("the sum is %d, %v, want %d", got, err, want)
		}
	}
	values, err := mobula.GetAll(ctx, refs)
	if err != nil {
		t.Fatal(err)
	}
	for i, v := range values[:12] {
		if len(v) != bigSize || v[0] != byte(i) || v[bigSize-1] != byte(i) {
			t.Errorf("value %d is wrong", i)
		}
	}
}

// A task on another node submits tasks and puts objects, which its job's owner has.
func TestATaskElsewhereSubmitsTasks(t *testing.T) {
	nodes := startNodes(t, 1, 2)
	ctx, _ := connectTo(t, nodes[0])
	var sums []mobula.Ref[int]
	for range 6 {
		sums = append(sums, nested.Go(ctx, mobula.V(3)))
	}
	for _, s := range sums {
		if got, err := s.Get(ctx); err != nil || got != 2*(1+1+2+3) {
			t.Fatalf("the sum is %d, %v", got, err)
		}
	}
}
