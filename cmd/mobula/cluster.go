package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"mobula/internal/errs"
	"mobula/internal/node"
	"mobula/internal/safefs"
	"mobula/internal/state"
	"mobula/internal/trust"
)

// portsApart is how far apart the ports of two local nodes are: each has four.
const portsApart = 10

// localCluster is what cluster local is told.
type localCluster struct {
	nodes  int
	dir    string
	port   int
	cpus   float64
	store  string
	detach bool
}

func (a *app) cluster() *cobra.Command {
	c := &cobra.Command{
		Use: "cluster", Short: "Run a cluster on this machine, and stop it", Args: cobra.NoArgs,
		Long: `A cluster of several nodes on one machine, to try things out: the nodes are processes of their
own, and talk over the loopback as nodes on several machines do. The guide to clusters shows
how to start one on several machines.`,
		Example: "  mobula cluster local -n 3\n  mobula cluster local -n 3 --detach\n  mobula cluster stop",
		RunE:    func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(a.clusterLocal(), a.clusterStop())
	return c
}

func (a *app) clusterLocal() *cobra.Command {
	var l localCluster
	c := &cobra.Command{
		Use: "local", Short: "Start a cluster of several nodes on this machine", Args: cobra.NoArgs,
		Long: `Local starts nodes that are one cluster, and prints their addresses. It runs until it is
interrupted, and stops them then; with --detach they stay, until mobula cluster stop. What they
know is kept in the directory: started again there, they are the same cluster. Those that run
there already are left alone: so it starts one that was lost again, and adds further ones.`,
		Example: "  mobula cluster local -n 3\n  mobula cluster local -n 3 --cpus 1 --store-size 256MiB --detach\n  mobula cluster local -n 5 --detach     # two more",
		RunE:    func(*cobra.Command, []string) error { return a.runLocal(l) },
	}
	c.Flags().IntVarP(&l.nodes, "nodes", "n", 3, "number of nodes")
	c.Flags().StringVar(&l.dir, "dir", defaultClusterDir(), "directory of the nodes' directories n1, n2, ...")
	c.Flags().IntVar(&l.port, "port", node.DefaultPort, fmt.Sprintf("port of the first node; the next ones have it plus %d, %d, ...", portsApart, 2*portsApart))
	c.Flags().Float64Var(&l.cpus, "cpus", 1, "CPUs of each node")
	c.Flags().StringVar(&l.store, "store-size", "256MiB", "size of each node's object store")
	c.Flags().BoolVarP(&l.detach, "detach", "d", false, "return when all nodes are up")
	return c
}

// defaultClusterDir is beside the directory of the user's node.
func defaultClusterDir() string {
	return filepath.Join(filepath.Dir(filepath.Dir(node.DefaultAddress())), "cluster")
}

// localNodes is the output of cluster local.
type localNodes struct {
	Nodes []started `json:"nodes"`
}

func (l localNodes) text(w io.Writer) {
	var data [][]string
	for _, n := range l.Nodes {
		data = append(data, []string{n.Node, n.Address, n.Cluster, strconv.Itoa(n.PID)})
	}
	rows(w, columns{head: []string{"NODE", "ADDRESS", "FOR OTHER NODES", "PID"}}, data)
	fmt.Fprintf(w, "\nTo use it:\n  export MOBULA_ADDRESS=%s\n", l.Nodes[0].Address)
}

// localName is what the nodes of a local cluster are called.
func localName(i int) string { return fmt.Sprintf("n%d", i+1) }

// listen is where a node listens for the others.
func (l localCluster) listen(i int) string {
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(l.port+i*portsApart))
}

func (a *app) runLocal(l localCluster) (err error) {
	if l.nodes < 1 || l.nodes > 64 {
		return errs.New(errs.CodeInvalid, "--nodes %d: want 1 to 64", l.nodes)
	}
	if err := safefs.MakeDir(l.dir); err != nil {
		return err
	}
	running, err := runningIn(a.ctx, l.dir)
	if err != nil {
		return err
	}
	var up localNodes
	var began []string
	defer func() {
		if err != nil || !l.detach {
			_, failed := a.stopNodes(l.dir, began)
			err = errors.Join(err, failed)
		}
	}()
	var join, token string
	for i := range l.nodes {
		name := localName(i)
		if slices.Contains(running, name) {
			s, err := requestOf[state.Status](a, filepath.Join(l.dir, name, node.SocketName), state.MethodStatus, state.StatusRequest{})
			if err == nil {
				up.Nodes = append(up.Nodes, started{Node: s.Node, Address: s.Address, PID: s.PID, Cluster: l.listen(i)})
				continue
			}
			if !errors.Is(err, errs.ErrDisconnected) && !errors.Is(err, errs.ErrNoNode) {
				return fmt.Errorf("node %s: %w", name, err)
			} // else it was killed just before
		}
		if i > 0 && token == "" {
			first := up.Nodes[0]
			made, err := requestOf[state.MadeToken](a, first.Address, state.MethodTokenMake, state.TokenRequest{Role: string(trust.Data), Lifetime: time.Hour, Note: "mobula cluster local"})
			if err != nil {
				return err
			}
			join, token = first.Cluster, made.Token
		}
		s, err := a.startLocal(l, i, join, token)
		if err != nil {
			return err
		}
		up.Nodes, began = append(up.Nodes, s), append(began, name)
	}
	if len(began) == 0 {
		return errs.New(errs.CodeNodeRunning, "a cluster runs in %s: node %s; stop it with mobula cluster stop, or start a second one with a --dir and a --port of its own", l.dir, strings.Join(running, ", "))
	}
	if err := a.print(up, up.text); err != nil || l.detach {
		return err
	}
	<-a.ctx.Done()
	return nil
}

// startLocal starts one node, in the background, which joins at an address; empty: it founds the cluster.
func (a *app) startLocal(l localCluster, i int, join, token string) (s started, err error) {
	name := localName(i)
	args := []string{
		"start", "--detach", "--json", "--name", name, "--dir", filepath.Join(l.dir, name), "--cpus", strconv.FormatFloat(l.cpus, 'g', -1, 64),
		"--store-size", l.store, "--timeout", a.timeout.String(), "--listen", l.listen(i),
	}
	cmd := exec.CommandContext(a.ctx, "/proc/self/exe", args...)
	cmd.Env = a.environ
	if join != "" {
		cmd.Args = append(cmd.Args, "--join", join)
		cmd.Env = append(cmd.Env, "MOBULA_TOKEN="+token)
	}
	var complaint bytes.Buffer
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	if err != nil {
		failed := &notStarted{said: cmp.Or(told(complaint.String()), err.Error()), as: errs.ErrRuntimeSetup}
		if as, ok := exitErrors[cmd.ProcessState.ExitCode()]; ok {
			failed.as = as
		}
		return s, fmt.Errorf("node %s: %w", name, failed)
	}
	if err := json.Unmarshal(out, &s); err != nil {
		return s, errs.New(errs.CodeProtocol, "node %s: its start printed %q: %v", name, out, err)
	}
	return s, nil
}

func (a *app) clusterStop() *cobra.Command {
	var dir string
	c := &cobra.Command{
		Use: "stop", Short: "Stop a cluster that mobula cluster local has started", Args: cobra.NoArgs,
		Long:    "Stop stops all nodes that run in the directory of a local cluster, the last one first.",
		Example: "  mobula cluster stop\n  mobula cluster stop --dir /tmp/second",
		RunE:    func(*cobra.Command, []string) error { return a.stopLocal(dir) },
	}
	c.Flags().StringVar(&dir, "dir", defaultClusterDir(), "directory of the nodes' directories")
	return c
}

// runningIn names the nodes of a directory that run: somebody takes connections at their sockets.
func runningIn(ctx context.Context, dir string) (names []string, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, errs.New(errs.CodeNoNode, "no cluster was started in %s: %v", dir, err)
	}
	for _, e := range entries {
		c, err := new(net.Dialer).DialContext(ctx, "unix", filepath.Join(dir, e.Name(), node.SocketName))
		if err == nil {
			names = append(names, e.Name())
			_ = c.Close() // nothing was sent
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
	}
	return names, nil
}

// stopLocal stops the nodes that run in a directory, whoever started them.
func (a *app) stopLocal(dir string) error {
	names, err := runningIn(context.WithoutCancel(a.ctx), dir)
	if err != nil {
		return err
	}
	stopped, err := a.stopNodes(dir, names)
	return errors.Join(a.print(stopped, stopped.text), err)
}

// stoppedNodes is the output of cluster stop.
type stoppedNodes struct {
	Stopped []state.Stopping `json:"stopped"`
}

func (s stoppedNodes) text(w io.Writer) {
	for _, n := range s.Stopped {
		fmt.Fprintf(w, "node %s, process %d, has stopped\n", n.Node, n.PID)
	}
	if len(s.Stopped) == 0 {
		fmt.Fprintln(w, "no node of it was running")
	}
}

// stopNodes stops nodes of a directory, the last one first, and gives those that have stopped.
func (a *app) stopNodes(dir string, names []string) (out stoppedNodes, err error) {
	b := *a
	b.ctx = context.WithoutCancel(a.ctx) // an interrupt is what stops the nodes
	var all []error
	for _, name := range slices.Backward(names) {
		s, err := requestOf[state.Stopping](&b, filepath.Join(dir, name, node.SocketName), state.MethodStop, state.StopRequest{Reason: "mobula cluster stop"})
		if errors.Is(err, errs.ErrNoNode) {
			continue // it has ended
		}
		if err == nil {
			ctx, cancel := context.WithTimeout(b.ctx, a.timeout)
			err = awaitEnd(ctx, s.PID, true)
			cancel()
		}
		if err != nil {
			all = append(all, fmt.Errorf("node %s: %w", name, err))
			continue
		}
		out.Stopped = append(out.Stopped, s)
	}
	return out, errors.Join(all...)
}
