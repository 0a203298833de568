package nodes

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"sync"

	"mobula/internal/netns"
)

// Port is the first of a node's ports.
const Port = 7710

// Settings say how nodes are started.
type Settings struct {
	Mobula string   // the executable
	Folder string   // of the nodes' directories; a short path, since sockets are there
	Args   []string // of each `mobula start`
	Env    []string // added to each environment
	Keep   bool     // they keep their stores, and do not end with the process that started them
}

// Cluster is a set of nodes. Its methods are safe for concurrent use.
type Cluster struct {
	first string // host and port of the first node

	mu    sync.Mutex
	set   Settings // guarded by mu
	nodes []*Node  // guarded by mu
}

// Start starts a node on each host: the first, and when that is up all others at once.
func Start(ctx context.Context, set Settings, hosts ...*netns.Host) (_ *Cluster, err error) {
	c := &Cluster{set: set, first: address(hosts[0])}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.Close())
		}
	}()
	if _, err := c.begin(ctx, hosts[0], nil); err != nil {
		return nil, err
	}
	token, err := c.Token(ctx, "data")
	if err != nil {
		return nil, err
	}
	all := make([]error, len(hosts)-1)
	var wg sync.WaitGroup
	for i, h := range hosts[1:] {
		wg.Go(func() { _, all[i] = c.join(ctx, h, token) })
	}
	wg.Wait()
	return c, errors.Join(all...)
}

// Join starts one more node, with further arguments.
func (c *Cluster) Join(ctx context.Context, h *netns.Host, args ...string) (*Node, error) {
	return c.JoinAs(ctx, h, "data", args...)
}

// JoinAs starts one more node in a role, likewise.
func (c *Cluster) JoinAs(ctx context.Context, h *netns.Host, role string, args ...string) (*Node, error) {
	token, err := c.Token(ctx, role)
	if err != nil {
		return nil, err
	}
	return c.join(ctx, h, token, append([]string{"--role", role}, args...)...)
}

func (c *Cluster) join(ctx context.Context, h *netns.Host, token string, args ...string) (*Node, error) {
	return c.JoinAt(ctx, h, token, c.first, args...)
}

// JoinAt starts one more node, which joins with a token at addresses.
func (c *Cluster) JoinAt(ctx context.Context, h *netns.Host, token, at string, args ...string) (*Node, error) {
	return c.begin(ctx, h, []string{"MOBULA_TOKEN=" + token}, append([]string{"--join", at}, args...)...)
}

// begin starts a node, with more in its environment, and counts it among the cluster's.
func (c *Cluster) begin(ctx context.Context, h *netns.Host, env []string, args ...string) (*Node, error) {
	set := c.settings()
	dir := filepath.Join(set.Folder, fmt.Sprintf("n%d", h.Addr.As4()[3]))
	set.Env = slices.Concat(set.Env, env)
	n, err := start(ctx, set, h, dir, append([]string{"--listen", address(h)}, args...))
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.nodes = append(c.nodes, n)
	slices.SortFunc(c.nodes, func(a, b *Node) int { return a.Host.Addr.Compare(b.Host.Addr) })
	return n, nil
}

// Use has nodes that are started from now on run another executable.
func (c *Cluster) Use(mobula string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.set.Mobula = mobula
}

// settings are those of the next start.
func (c *Cluster) settings() Settings {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.set
}

// Return starts a node that has ended again, on its host and with its directory, and with further arguments.
func (c *Cluster) Return(ctx context.Context, was *Node, args ...string) (*Node, error) {
	n, err := start(ctx, c.settings(), was.Host, was.Dir, append([]string{"--listen", address(was.Host)}, args...))
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.nodes[slices.Index(c.nodes, was)] = n
	return n, nil
}

// address is where a node on the host listens.
func address(h *netns.Host) string { return h.Addr.String() + ":" + strconv.Itoa(Port) }

// Address is where others join the cluster.
func (c *Cluster) Address() string { return c.first }

// Nodes are those that were started, by their addresses, also if they have ended since.
func (c *Cluster) Nodes() []*Node {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.nodes)
}

// Token has the first node make a token, with which a node joins in a role.
func (c *Cluster) Token(ctx context.Context, role string) (string, error) {
	var made struct{ Token string }
	err := c.Nodes()[0].Ask(ctx, &made, "token", "create", "--role", role)
	if err == nil && made.Token == "" {
		err = errors.New("nodes: `mobula token create` gave no token")
	}
	return made.Token, err
}

// Close stops all nodes, the first one last.
func (c *Cluster) Close() error {
	all := c.Nodes()
	slices.Reverse(all)
	var wg sync.WaitGroup
	failed := make([]error, len(all))
	for i, n := range all[:max(len(all)-1, 0)] {
		wg.Go(func() { failed[i] = n.Stop() })
	}
	wg.Wait()
	if len(all) > 0 {
		failed[len(all)-1] = all[len(all)-1].Stop()
	}
	return errors.Join(failed...)
}
