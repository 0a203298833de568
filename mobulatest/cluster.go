package mobulatest

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"mobula"
	"mobula/internal/errs"
	"mobula/internal/join"
	"mobula/internal/node"
	_ "mobula/internal/node/gossip/memberlist" // nodes gossip
	"mobula/internal/trust"
)

// Times of a cluster: how long a node may take to start and to hear from the others, and how long its token lets others join.
const (
	nodeStartTimeout = 60 * time.Second
	tokenLifetime    = 24 * time.Hour
)

// Nodes is a cluster in the process of a test. A node is named by its index, from 0 on; the first one carries the cluster's tables.
type Nodes struct {
	t     testing.TB
	dir   string // of the nodes' directories
	out   *output
	opts  []mobula.StartOption
	token string // with which nodes join; empty: there is none yet

	mu   sync.Mutex
	all  []*node.Node // guarded by mu: each that was started
	gone []bool       // guarded by mu: it was killed or stopped
}

// Cluster starts a cluster of n nodes for t: in this process, on the loopback interface, with TLS between them as between machines. Each has one CPU, a small store
// (64 MiB) and worker processes, so Main must be in TestMain; the options add to, and override, that for every node. When Cluster returns, each node has heard
// from each other one. The nodes log to the test, and end with it.
func Cluster(t testing.TB, n int, opts ...mobula.StartOption) *Nodes {
	t.Helper()
	if n < 1 {
		t.Fatalf("mobulatest: a cluster of %d nodes, want 1 or more", n)
	}
	c := &Nodes{t: t, dir: tempDir(t), out: &output{w: t.Output()}, opts: opts}
	checked := leaks.begin()
	t.Cleanup(func() {
		c.close()
		c.out.end()
		if err := leaks.end(checked); err != nil {
			t.Errorf("mobulatest: the cluster left something running: %v", err)
		}
	})
	for range n {
		c.Add()
	}
	return c
}

// Add has another node join, and gives its index. The options add to those of Cluster.
func (c *Nodes) Add(opts ...mobula.StartOption) int {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), nodeStartTimeout)
	defer cancel()
	c.mu.Lock()
	defer c.mu.Unlock()
	i := len(c.all)
	n, err := c.startLocked(ctx, i, slices.Concat(c.opts, opts))
	if err != nil {
		c.t.Fatalf("mobulatest: node %d: %v", i, err)
	}
	c.all, c.gone = append(c.all, n), append(c.gone, false)
	if c.token == "" {
		if c.token, err = n.MakeToken(ctx, trust.Data, tokenLifetime); err != nil {
			c.t.Fatalf("mobulatest: %v", err)
		}
	}
	up := slices.DeleteFunc(slices.Clone(c.all), func(o *node.Node) bool { return c.gone[slices.Index(c.all, o)] })
	for _, o := range up {
		if err := o.Meet(ctx, up...); err != nil {
			c.t.Fatalf("mobulatest: %v", err)
		}
	}
	return i
}

// startLocked starts a node, which founds the cluster or joins it. c.mu is held.
func (c *Nodes) startLocked(ctx context.Context, i int, opts []mobula.StartOption) (*node.Node, error) {
	log := slog.New(slog.NewTextHandler(c.out, &slog.HandlerOptions{Level: slog.LevelWarn})).With("node", i)
	own := []mobula.StartOption{mobula.WithStore(storeBytes), mobula.WithCPUs(1), mobula.WithProcesses(), mobula.WithLogger(log)}
	var cfg join.Config
	for _, set := range slices.Concat(own, opts) {
		if err := set(&cfg); err != nil {
			return nil, err
		}
	}
	switch {
	case cfg.Dir != "":
		return nil, errs.New(errs.CodeInvalid, "WithDir: each node of a cluster has a directory of its own")
	case cfg.Faults != nil:
		return nil, errs.New(errs.CodeInvalid, "WithFaults: a plan is for one node: see Start and StartNode")
	case cfg.Python != nil:
		return nil, errs.New(errs.CodeInvalid, "WithPython: a driver says what its Python workers run: Connect with mobula.ConnectPython")
	}
	cfg.Dir = filepath.Join(c.dir, strconv.Itoa(i))
	if err := node.NoWorker(); err != nil {
		return nil, err
	}
	out, _, err := cfg.Node()
	if err != nil {
		return nil, err
	}
	out.Name = fmt.Sprintf("node%d", i)
	out.Wires = &node.Wires{Cluster: "test", Listen: loopback()}
	if i > 0 {
		first := c.all[0]
		out.Wires.Join, out.Wires.Token = []string{first.ClusterAddress()}, c.token
	}
	return node.Start(ctx, out)
}

// loopback is an address of this machine that most likely nobody else has: of 127.0.0.0/8 all are.
func loopback() string {
	return fmt.Sprintf("127.%d.%d.%d", 1+rand.IntN(254), rand.IntN(256), 1+rand.IntN(254))
}

// Len is how many nodes were started, those that were killed or stopped among them.
func (c *Nodes) Len() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.all)
}

// ID is a node's id, for mobula.OnNode and mobula.PreferNode.
func (c *Nodes) ID(i int) string { return c.node(i).ID() }

// Address is a node's address on this machine, for mobula.Connect.
func (c *Nodes) Address(i int) string { return c.node(i).Address() }

func (c *Nodes) node(i int) *node.Node {
	c.t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if i < 0 || i >= len(c.all) {
		c.t.Fatalf("mobulatest: there is no node %d: %d were started", i, len(c.all))
	}
	return c.all[i]
}

// Connect joins a node as a driver, until the test ends.
func (c *Nodes) Connect(i int, opts ...mobula.ConnectOption) *mobula.Cluster {
	c.t.Helper()
	d, err := mobula.Connect(c.t.Context(), c.Address(i), opts...)
	if err != nil {
		c.t.Fatalf("mobulatest: connect to node %d: %v", i, err)
	}
	c.t.Cleanup(func() {
		ctx, cancel := c.closing()
		defer cancel()
		if err := d.Close(ctx); err != nil && !c.isGone(i) {
			c.t.Errorf("mobulatest: close: %v", err)
		}
	})
	return d
}

func (c *Nodes) isGone(i int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.gone[i]
}

// Kill ends a node as the loss of its machine would: its workers are killed, and the others hear nothing of it. They find that nobody is there at once, and are
// sure of it after some seconds. Drivers that are connected to the node get mobula.ErrOwnerDied.
func (c *Nodes) Kill(i int) {
	c.t.Helper()
	c.end(i, (*node.Node).Kill)
}

// Stop stops a node in order.
func (c *Nodes) Stop(i int) {
	c.t.Helper()
	c.end(i, (*node.Node).Close)
}

func (c *Nodes) end(i int, how func(*node.Node, context.Context) error) {
	c.t.Helper()
	n := c.node(i)
	c.mu.Lock()
	c.gone[i] = true
	c.mu.Unlock()
	ctx, cancel := c.closing()
	defer cancel()
	err := how(n, ctx)
	if gone := os.RemoveAll(filepath.Dir(n.Address())); err == nil { // else its drivers would wait for it to be started again
		err = gone
	}
	if err != nil {
		c.t.Errorf("mobulatest: end of node %d: %v", i, err)
	}
}

// closing is the time that something has to end.
func (c *Nodes) closing() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(c.t.Context()), closeTimeout)
}

// close stops all nodes: those that joined at once, and then the first one, which notes that they have left.
func (c *Nodes) close() {
	c.mu.Lock()
	all := c.all
	c.mu.Unlock()
	if len(all) == 0 {
		return
	}
	ctx, cancel := c.closing()
	defer cancel()
	var wg sync.WaitGroup
	for i, n := range all[1:] {
		wg.Go(func() {
			if err := n.Close(ctx); err != nil {
				c.t.Errorf("mobulatest: close of node %d: %v", i+1, err)
			}
		})
	}
	wg.Wait()
	if err := all[0].Close(ctx); err != nil {
		c.t.Errorf("mobulatest: close of node 0: %v", err)
	}
}
