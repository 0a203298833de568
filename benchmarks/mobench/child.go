package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"mobula"
	"mobula/benchmarks/floor"
	"mobula/internal/node"
)

// roleEnv tells a child process what it is. Workers inherit it and are told apart by
// mobula.WorkerMain.
const roleEnv = "MOBENCH_ROLE"

// role is what a child process is to do.
type role struct {
	Kind  string // "node", "cold", "idle", "trace"
	Mode  string
	Dir   string // of nodes
	Store int64
	Spill string
}

// enter serves if this process is a child, and tells whether it was one.
func enter() bool {
	stop := startProfiles(os.Getenv(profileEnv))
	defer stop()
	if mobula.WorkerMain() {
		return true
	}
	text := os.Getenv(roleEnv)
	if text == "" {
		floor.Child()
		return false
	}
	if err := serveRole(text); err != nil {
		fmt.Fprintln(os.Stderr, "mobench: child process:", err)
		stop()
		os.Exit(1)
	}
	return true
}

func serveRole(text string) (err error) {
	var r role
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		return fmt.Errorf("%s=%q: %w", roleEnv, text, err)
	}
	_ = os.Unsetenv(roleEnv) // our own children are given theirs
	ctx := context.Background()
	if r.Kind == "node" {
		return serveNode(ctx, r)
	}
	c, n, err := startCluster(ctx, r.Mode, r.Dir, setup{})
	if err != nil {
		return err
	}
	defer func() {
		err = errors.Join(err, c.Close(ctx))
		if n != nil {
			err = errors.Join(err, n.stop())
		}
	}()
	ctx = c.Context(ctx)
	if r.Kind == "trace" {
		return serveTrace(ctx)
	}
	// A first result: the end of a cold start, and what an idle runtime has done.
	if v, err := echo.Go(ctx, mobula.V(1)).Get(ctx); err != nil || v != 1 {
		return fmt.Errorf("first task: %d, %w", v, err)
	}
	fmt.Println("ready")
	_, err = io.Copy(io.Discard, os.Stdin) // until the parent has seen enough
	return err
}

// serveNode runs a node by itself until the parent goes.
func serveNode(ctx context.Context, r role) error {
	cfg := node.Config{Dir: r.Dir, Keep: true, StoreBytes: uint64(r.Store)}
	if r.Spill != "" {
		cfg.SpillURLs = []string{r.Spill}
	}
	n, err := node.Start(ctx, cfg)
	if err != nil {
		return err
	}
	fmt.Println(n.Address())
	_, err = io.Copy(io.Discard, os.Stdin)
	return errors.Join(err, n.Close(ctx))
}

// child is a process of this program in a role.
type child struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

// startChild starts one. extra is added to its environment.
func startChild(r role, extra ...string) (*child, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	text, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	c := &child{cmd: exec.Command(self)}
	c.cmd.Env = append(append(os.Environ(), roleEnv+"="+string(text)), extra...)
	c.cmd.Stderr = os.Stderr
	if c.in, err = c.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	c.out = bufio.NewReader(out)
	if err := c.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s process: %w", r.Kind, err)
	}
	return c, nil
}

// line reads what the child says next.
func (c *child) line() (string, error) {
	s, err := c.out.ReadString('\n')
	if err != nil {
		return "", fmt.Errorf("child process %d ended before it answered: %w", c.cmd.Process.Pid, err)
	}
	return strings.TrimSpace(s), nil
}

// stopGrace bounds a child's shutdown.
const stopGrace = 30 * time.Second

// stop ends the child and waits for it.
func (c *child) stop() error {
	_ = c.in.Close() // tells it to go
	t := time.AfterFunc(stopGrace, func() { _ = c.cmd.Process.Kill() })
	defer t.Stop()
	if err := c.cmd.Wait(); err != nil {
		return fmt.Errorf("child process: %w", err)
	}
	return nil
}

// nodeProcess is a node in a process of its own.
type nodeProcess struct {
	*child
	dir     string
	address string
}

// startNode starts one with its directory under dir.
func startNode(dir string, s setup) (_ *nodeProcess, err error) {
	n := &nodeProcess{}
	if n.dir, err = os.MkdirTemp(dir, "mobench-node-"); err != nil {
		return nil, fmt.Errorf("node directory: %w", err)
	}
	if len(filepath.Join(n.dir, node.SocketName)) > 100 {
		_ = os.RemoveAll(n.dir)
		return nil, fmt.Errorf("node directory %s is too long for a socket: choose a shorter one with -dir", n.dir)
	}
	if n.child, err = startChild(role{Kind: "node", Dir: n.dir, Store: s.store, Spill: s.spill}); err != nil {
		return nil, errors.Join(err, os.RemoveAll(n.dir))
	}
	if n.address, err = n.line(); err != nil {
		return nil, errors.Join(err, n.stop())
	}
	return n, nil
}

// stop ends the node. A kept node leaves its segment for its next life, which will not be: it goes too.
func (n *nodeProcess) stop() error {
	segments := segmentFiles(n.cmd.Process.Pid)
	err := n.child.stop()
	for _, path := range segments {
		if e := os.Remove(path); e != nil && !errors.Is(e, os.ErrNotExist) {
			err = errors.Join(err, e)
		}
	}
	return errors.Join(err, os.RemoveAll(n.dir))
}

// segmentFiles are the named segments that a process has open.
func segmentFiles(pid int) (paths []string) {
	links, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	seen := make(map[string]bool)
	for _, l := range links {
		if target, err := os.Readlink(l); err == nil && strings.HasPrefix(target, "/dev/shm/mobula-") && !seen[target] {
			seen[target] = true
			paths = append(paths, target)
		}
	}
	return paths
}
