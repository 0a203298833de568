package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"mobula"
	"mobula/internal/netns"
	"mobula/internal/netns/nodes"
)

// networkEnv names the network on whose first host this process runs.
const networkEnv = "MOBENCH_NETWORK"

// hosts is how many a network has: as many as the broadcast needs, and one for the driver.
const hosts = 7

// between is the network that nodes are on, and what is known of it.
type between struct {
	hosts  []*netns.Host
	mobula string // the executable
}

// address is where this process can be reached by all nodes.
func (n *between) address() string {
	if n == nil {
		return "127.0.0.1"
	}
	return n.hosts[0].Addr.String()
}

// enterNetwork gives the network that this process is on, if it is on one.
func enterNetwork(mobula string) (*between, error) {
	text := os.Getenv(networkEnv)
	if text == "" {
		return nil, nil //nolint:nilnil // no network is the usual case
	}
	n, err := netns.Open(text)
	if err != nil {
		return nil, err
	}
	if mobula, err = filepath.Abs(mobula); err != nil {
		return nil, err
	}
	if _, err := os.Stat(mobula); err != nil {
		return nil, fmt.Errorf("the executable of nodes: %w; make build makes it, -mobula names another", err)
	}
	return &between{hosts: n.Hosts, mobula: mobula}, nil
}

// errThere is returned when the process on the first host failed, which has said why.
var errThere = errors.New("it failed on the first host")

// onFirstHost runs this program again on the first host of a network.
func onFirstHost(ctx context.Context, args []string) (err error) {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	n, err := netns.New(ctx, hosts)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, n.Close()) }()
	cmd := exec.CommandContext(ctx, self, args...)
	cmd.Env = append(os.Environ(), networkEnv+"="+n.String())
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Cancel, cmd.WaitDelay = func() error { return cmd.Process.Signal(os.Interrupt) }, stopGrace
	if err := n.Hosts[0].Start(cmd); err != nil {
		return err
	}
	var ended *exec.ExitError
	if err := cmd.Wait(); errors.As(err, &ended) {
		return errThere
	} else if err != nil {
		return err
	}
	return nil
}

// nodeSet is the nodes of a case.
type nodeSet struct {
	*nodes.Cluster
	dir    string
	ids    []string      // of all that were started, for mobula.OnNode
	driver *netns.Host   // where the driver's node is
	remote []*nodes.Node // the other ones
	to     []string      // their ids
}

// startSeveral starts nodes, and a driver in this process.
func (b *bench) startSeveral(ctx context.Context, s setup) (_ *cluster, err error) {
	if s.nodes == 0 {
		s.nodes = 2
	}
	if s.store == 0 {
		s.store = 512 * mib
	}
	dir, err := os.MkdirTemp(b.dir, "mobench-")
	if err != nil {
		return nil, fmt.Errorf("directory for nodes: %w; choose another with -dir", err)
	}
	at := b.over.hosts[:s.nodes]
	if b.mode == overEmbedded {
		at = b.over.hosts[1 : 1+s.nodes]
	}
	n := &nodeSet{dir: dir}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("start %s: %w", b.mode, err), n.stop())
		}
	}()
	if n.Cluster, err = nodes.Start(ctx, nodes.Settings{
		Mobula: b.over.mobula, Folder: dir, Args: []string{"--store-size", fmt.Sprint(s.store)},
	}, at...); err != nil {
		return nil, err
	}
	for _, m := range n.Nodes() {
		id, err := idOf(ctx, m)
		if err != nil {
			return nil, err
		}
		n.ids = append(n.ids, id)
	}
	n.driver, n.remote, n.to = b.over.hosts[0], n.Nodes(), n.ids
	var c *mobula.Cluster
	if b.mode == overEmbedded {
		c, err = joinInside(ctx, n.Cluster)
	} else {
		n.remote, n.to = n.remote[1:], n.to[1:]
		c, err = mobula.Connect(ctx, n.Nodes()[0].Address)
	}
	if err != nil {
		return nil, err
	}
	if err := n.known(ctx, c.Address()); err != nil {
		return nil, errors.Join(err, c.Close(ctx))
	}
	return &cluster{Cluster: c, ctx: c.Context(ctx), nodes: n, stale: b.stale}, nil
}

// known waits until the driver's node gives work to all that were started: it learns of them a moment after they are up. It asks as a driver of
// its own, so that nothing is counted of it.
func (n *nodeSet) known(ctx context.Context, address string) (err error) {
	c, err := mobula.Connect(ctx, address)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close(ctx)) }()
	for _, id := range n.ids {
		for {
			_, err := echo.Go(c.Context(ctx), mobula.V(0), mobula.OnNode(id)).Get(c.Context(ctx))
			if err == nil {
				break
			}
			if !errors.Is(err, mobula.ErrUnschedulable) {
				return fmt.Errorf("a first task on node %s: %w", id, err)
			}
			if err := pause(ctx, 10*time.Millisecond); err != nil {
				return fmt.Errorf("node %s is not known: %w", id, err)
			}
		}
	}
	return nil
}

// joinInside gives the driver a node inside this process, which joins the cluster to submit work.
func joinInside(ctx context.Context, c *nodes.Cluster) (*mobula.Cluster, error) {
	token, err := c.Token(ctx, "driver")
	if err != nil {
		return nil, err
	}
	return mobula.Connect(ctx, c.Address(), mobula.ConnectToken(token))
}

// idOf asks a node for the id by which tasks may choose it.
func idOf(ctx context.Context, n *nodes.Node) (string, error) {
	var s struct{ Labels map[string]string }
	if err := n.Ask(ctx, &s, "status"); err != nil {
		return "", err
	}
	id := s.Labels["mobula.io/node-id"]
	if id == "" {
		return "", fmt.Errorf("the node on %v does not say its id", n.Host.Addr)
	}
	return id, nil
}

// stop ends the nodes and removes their directories.
func (n *nodeSet) stop() error {
	var err error
	if n.Cluster != nil {
		err = n.Close()
	}
	return errors.Join(err, os.RemoveAll(n.dir))
}
