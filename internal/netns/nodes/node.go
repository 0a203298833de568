package nodes

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"mobula/internal/netns"
)

// StopPatience is how long a node may take to stop in order.
const StopPatience = 30 * time.Second

// Node is a node in a process of its own. Its methods are safe for concurrent use.
type Node struct {
	Host    *netns.Host
	Dir     string
	Name    string
	Address string // of its socket, for drivers on this machine
	PID     int

	mobula string
	env    []string
	cmd    *exec.Cmd
	leave  func() // tells it to go
	log    tail
	once   sync.Once
	err    error // of its end; written in once
}

// start starts a node and waits until it is up.
func start(ctx context.Context, set Settings, h *netns.Host, dir string, args []string) (_ *Node, err error) {
	n := &Node{Host: h, Dir: dir, mobula: set.Mobula, env: environ(set.Env)}
	args = append([]string{"start", "--json", "--dir", dir}, append(args, set.Args...)...)
	if !set.Keep {
		args = append(args, "--until-stdin-closes")
	}
	n.cmd = exec.Command(set.Mobula, args...)
	n.cmd.Env, n.cmd.Stderr = n.env, &n.log
	n.leave = func() { _ = n.cmd.Process.Signal(os.Interrupt) } // it has ended already
	if !set.Keep {
		in, err := n.cmd.StdinPipe()
		if err != nil {
			return nil, err
		}
		n.leave = func() { _ = in.Close() }
	}
	out, err := n.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := h.Start(n.cmd); err != nil {
		return nil, fmt.Errorf("nodes: start %s: %w", set.Mobula, err)
	}
	stop := context.AfterFunc(ctx, func() { _ = n.cmd.Process.Kill() }) // then the read below ends
	defer stop()
	var up struct {
		Node, Address string
		PID           int
	}
	said, err := bufio.NewReader(out).ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(said, &up)
	}
	if err != nil {
		_ = n.Kill(context.WithoutCancel(ctx)) // it has failed already
		return nil, fmt.Errorf("nodes: mobula %s on %v did not come up: %w: %s", args[0], h.Addr, errors.Join(err, context.Cause(ctx)), n.Log())
	}
	n.Name, n.Address, n.PID = up.Node, up.Address, up.PID
	return n, nil
}

// environ is this process' environment without the settings of a node, and more.
func environ(more []string) (env []string) {
	for _, e := range os.Environ() {
		if !strings.HasPrefix(e, "MOBULA_") {
			env = append(env, e)
		}
	}
	return append(append(env, "MOBULA_CONFIG=/dev/null"), more...)
}

// Run runs a command of mobula that asks this node, and gives its output.
func (n *Node) Run(ctx context.Context, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, n.mobula, append(args, "--address", n.Address)...)
	cmd.Env = n.env
	var failed bytes.Buffer
	cmd.Stderr = &failed
	out, err := cmd.Output()
	if err != nil {
		return out, fmt.Errorf("nodes: mobula %s: %w: %s", strings.Join(args, " "), errors.Join(err, context.Cause(ctx)), bytes.TrimSpace(failed.Bytes()))
	}
	return out, nil
}

// Ask runs a command with --json and reads its output into what answer points to.
func (n *Node) Ask(ctx context.Context, answer any, args ...string) error {
	out, err := n.Run(ctx, append(args, "--json")...)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(out, answer); err != nil {
		return fmt.Errorf("nodes: mobula %s: %w: %s", strings.Join(args, " "), err, out)
	}
	return nil
}

// Wait waits until the node has ended by itself. At the end of the context it is ended by force.
func (n *Node) Wait(ctx context.Context) error {
	n.once.Do(func() {
		stop := context.AfterFunc(ctx, func() { _ = n.cmd.Process.Kill() }) // then the wait below ends
		defer stop()
		if err := n.cmd.Wait(); err != nil {
			n.err = fmt.Errorf("nodes: the node on %v: %w: %s", n.Host.Addr, errors.Join(err, context.Cause(ctx)), n.Log())
		}
	})
	return n.err
}

// Kill ends all processes on the node's host without notice.
func (n *Node) Kill(ctx context.Context) error {
	err := n.Host.Kill(ctx)
	n.once.Do(func() { _ = n.cmd.Wait() }) // that it was killed is known
	return err
}

// Stop ends the node in order. It gives the same result when it is called again.
func (n *Node) Stop() error {
	n.once.Do(func() {
		n.leave()
		late := time.AfterFunc(StopPatience, func() { _ = n.cmd.Process.Kill() })
		defer late.Stop()
		if err := n.cmd.Wait(); err != nil {
			n.err = fmt.Errorf("nodes: the node on %v: %w: %s", n.Host.Addr, err, n.Log())
		}
	})
	return n.err
}

// Log is what the node wrote to standard error last.
func (n *Node) Log() string { return n.log.String() }
