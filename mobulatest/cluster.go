package mobulatest

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/netip"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"mobula"
	"mobula/internal/errs"
	"mobula/internal/join"
	"mobula/internal/loopback"
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
	t       testing.TB
	dir     string // of the nodes' directories
	out     *output
	opts    []mobula.StartOption
	token   string         // with which nodes join; empty: there is none yet
	follows sync.WaitGroup // goroutines that follow nodes
	over    chan struct{}  // closed when the test ends

	mu  sync.Mutex
	all []*member // guarded by mu: each that was started
}

// member is a node of the cluster, in all its lives.
type member struct {
	opts []mobula.StartOption
	host *loopback.Host

	// Guarded by Nodes.mu.
	node   *node.Node // in its present life, or its last one
	lives  int
	gone   bool          // it was killed or stopped, or ends by itself
	ended  chan struct{} // closed when that is done
	alone  bool          // it is cut off from all others
	cutOff map[int]bool  // from which others it is, besides
}

// Cluster starts a cluster of n nodes for t: in this process, on the loopback interface, with TLS between them as between machines. Each has one CPU, a small store
// (64 MiB) and worker processes, so Main must be in TestMain; the options add to, and override, that for every node. When Cluster returns, each node has heard
// from each other one. The nodes log to the test, and end with it.
func Cluster(t testing.TB, n int, opts ...mobula.StartOption) *Nodes {
	t.Helper()
	if n < 1 {
		t.Fatalf("mobulatest: a cluster of %d nodes, want 1 or more", n)
	}
	c := &Nodes{t: t, dir: tempDir(t), out: &output{w: t.Output()}, opts: opts, over: make(chan struct{})}
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
	m := &member{opts: slices.Concat(c.opts, opts), host: loopback.New(address()), cutOff: make(map[int]bool)}
	if err := c.startLocked(ctx, i, m); err != nil {
		c.t.Fatalf("mobulatest: node %d: %v", i, err)
	}
	c.all = append(c.all, m)
	if c.token == "" {
		var err error
		if c.token, err = m.node.MakeToken(ctx, trust.Data, tokenLifetime); err != nil {
			c.t.Fatalf("mobulatest: %v", err)
		}
	}
	if err := c.meetLocked(ctx); err != nil {
		c.t.Fatalf("mobulatest: %v", err)
	}
	return i
}

// meetLocked waits until each node that runs has heard from each other one that it can hear. c.mu is held.
func (c *Nodes) meetLocked(ctx context.Context) error {
	c.cutLocked()
	for i, m := range c.all {
		for j, o := range c.all {
			if m.gone || o.gone || c.apartLocked(i, j) {
				continue
			}
			if err := m.node.Meet(ctx, o.node); err != nil {
				return err
			}
		}
	}
	return nil
}

// startLocked begins a life of a node, which founds the cluster, joins it or comes back to it. c.mu is held.
func (c *Nodes) startLocked(ctx context.Context, i int, m *member) error {
	log := slog.New(slog.NewTextHandler(c.out, &slog.HandlerOptions{Level: slog.LevelWarn})).With("node", i)
	own := []mobula.StartOption{mobula.WithStore(storeBytes), mobula.WithCPUs(1), mobula.WithProcesses(), mobula.WithLogger(log)}
	var cfg join.Config
	for _, set := range slices.Concat(own, m.opts) {
		if err := set(&cfg); err != nil {
			return err
		}
	}
	switch {
	case cfg.Dir != "":
		return errs.New(errs.CodeInvalid, "WithDir: each node of a cluster has a directory of its own")
	case cfg.Faults != nil:
		return errs.New(errs.CodeInvalid, "WithFaults: a plan is for one node: see Start and StartNode")
	case cfg.Python != nil:
		return errs.New(errs.CodeInvalid, "WithPython: a driver says what its Python workers run: Connect with mobula.ConnectPython")
	}
	cfg.Dir = c.dirOf(i)
	if err := node.NoWorker(); err != nil {
		return err
	}
	out, _, err := cfg.Node()
	if err != nil {
		return err
	}
	out.Name, out.Keep = fmt.Sprintf("node%d", i), true
	out.Wires = &node.Wires{Cluster: "test", Listen: m.host.Addr().String(), Dialer: m.host.Dialer()}
	if i > 0 && m.lives == 0 {
		first := c.all[0].node
		out.Wires.Join, out.Wires.Token = []string{first.ClusterAddress()}, c.token
	}
	n, err := node.Start(ctx, out)
	if err != nil {
		return err
	}
	m.node, m.gone, m.ended = n, false, make(chan struct{})
	m.lives++
	c.follows.Go(func() { c.follow(i, n) })
	return nil
}

// follow ends a node that is to end, as a process of its own would: one that was cut off finds that the control plane has ended its life.
func (c *Nodes) follow(i int, n *node.Node) {
	select {
	case <-n.StopRequested():
		c.end(i, n, (*node.Node).Close)
	case <-c.over:
	}
}

// dirOf is a node's directory. While the node is gone it is elsewhere: its drivers would wait for it to be started again.
func (c *Nodes) dirOf(i int) string { return filepath.Join(c.dir, strconv.Itoa(i)) }

// address is one of this machine that most likely nobody else has: of 127.0.0.0/8 all are.
func address() netip.Addr {
	return netip.AddrFrom4([4]byte{127, byte(1 + rand.IntN(254)), byte(rand.IntN(256)), byte(1 + rand.IntN(254))})
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
	return c.memberLocked(i).node
}

// memberLocked gives a node that was started. c.mu is held, and given up where the test ends here.
func (c *Nodes) memberLocked(i int) *member {
	c.t.Helper()
	if i < 0 || i >= len(c.all) {
		c.t.Fatalf("mobulatest: there is no node %d: %d were started", i, len(c.all))
	}
	return c.all[i]
}

// Connect joins a node as a driver, until the test ends.
func (c *Nodes) Connect(i int, opts ...mobula.ConnectOption) *mobula.Cluster {
	c.t.Helper()
	life := c.lifeOf(i)
	d, err := mobula.Connect(c.t.Context(), c.Address(i), opts...)
	if err != nil {
		c.t.Fatalf("mobulatest: connect to node %d: %v", i, err)
	}
	c.t.Cleanup(func() {
		ctx, cancel := c.closing()
		defer cancel()
		if err := d.Close(ctx); err != nil && c.lifeOf(i) == life {
			c.t.Errorf("mobulatest: close: %v", err)
		}
	})
	return d
}

// lifeOf is the number of a node's life; 0: it is gone.
func (c *Nodes) lifeOf(i int) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if m := c.memberLocked(i); !m.gone {
		return m.lives
	}
	return 0
}

// closing is the time that something has to end.
func (c *Nodes) closing() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(c.t.Context()), closeTimeout)
}

// close stops all nodes: those that joined at once, and then the first one, which notes that they have left.
func (c *Nodes) close() {
	c.Heal()
	close(c.over)
	c.follows.Wait()
	c.mu.Lock()
	all := c.all
	c.mu.Unlock()
	if len(all) == 0 {
		return
	}
	ctx, cancel := c.closing()
	defer cancel()
	var wg sync.WaitGroup
	for i, m := range all[1:] {
		wg.Go(func() {
			if err := m.node.Close(ctx); err != nil {
				c.t.Errorf("mobulatest: close of node %d: %v", i+1, err)
			}
		})
	}
	wg.Wait()
	if err := all[0].node.Close(ctx); err != nil {
		c.t.Errorf("mobulatest: close of node 0: %v", err)
	}
}
