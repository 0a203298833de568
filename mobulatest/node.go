package mobulatest

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"mobula"
	"mobula/chaos"
	"mobula/internal/errs"
	"mobula/internal/fault"
	"mobula/internal/node"
)

// nodeEnv makes the test binary a node; its value has the configuration.
const nodeEnv = "MOBULA_TEST_NODE"

// startTimeout bounds a node's start; a machine may be slow.
const startTimeout = 2 * time.Minute

// NodeConfig configures a node in a process of its own. Zero means the default.
//
// Experimental: it goes with faults, which may change in any release.
type NodeConfig struct {
	CPUs   float64     // default: the machine's
	Store  int64       // bytes; default 64 MiB
	Spill  []string    // default: a directory of the node's
	Faults *chaos.Plan `json:"-"` // asked over the plan's socket; nil: none
}

// nodeSettings is the configuration passed to its process.
type nodeSettings struct {
	NodeConfig
	Dir, Chaos string
}

// Node is a node in a process of its own: the test binary started again, so Main must be in TestMain. It can be killed and started again: what
// drivers wait for goes on.
//
// Experimental: it goes with faults, which may change in any release.
type Node struct {
	t    testing.TB
	told nodeSettings

	mu     sync.Mutex
	cmd    *exec.Cmd // guarded by mu; nil: it does not run
	stdin  io.Closer // guarded by mu
	frozen bool      // guarded by mu
	addr   string    // guarded by mu
}

var _ fault.Node = (*Node)(nil)

// StartNode starts a node for t, with tasks in worker processes. It is stopped when the test ends, after the clusters connected to it are
// closed.
//
// Experimental: it goes with faults, which may change in any release.
func StartNode(t testing.TB, cfg NodeConfig) *Node {
	t.Helper()
	n := &Node{t: t, told: nodeSettings{NodeConfig: cfg, Dir: tempDir(t)}}
	if n.told.Store == 0 {
		n.told.Store = storeBytes
	}
	plan := cfg.Faults
	if plan != nil {
		p := plan.Faults()
		if err := p.Check(fault.Mode{Processes: true, Node: true}); err != nil {
			t.Fatalf("mobulatest: %v", err)
		}
		opened, err := p.Open()
		if err != nil {
			t.Fatalf("mobulatest: %v", err)
		}
		n.told.Chaos = p.Address()
		p.Attach(n)
		t.Cleanup(func() {
			if opened {
				if err := p.Close(); err != nil {
					t.Errorf("mobulatest: %v", err)
				}
			}
			report(t, plan)
		})
	}
	t.Cleanup(func() {
		if plan != nil {
			plan.Quiet()
		}
		if err := n.Stop(); err != nil {
			t.Errorf("mobulatest: %v", err)
		}
	})
	if err := n.Start(); err != nil {
		t.Fatalf("mobulatest: %v", err)
	}
	return n
}

// Address is the node's address, for mobula.Connect.
func (n *Node) Address() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.addr
}

// Connect joins the node as a driver, until the test ends.
func (n *Node) Connect(opts ...mobula.ConnectOption) *mobula.Cluster {
	n.t.Helper()
	c, err := mobula.Connect(n.t.Context(), n.Address(), opts...)
	if err != nil {
		n.t.Fatalf("mobulatest: connect: %v", err)
	}
	n.t.Cleanup(func() {
		if p := fault.Current(); p != nil {
			p.Quiet() // a frozen node would block Close
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(n.t.Context()), closeTimeout)
		defer cancel()
		if err := c.Close(ctx); err != nil {
			n.t.Errorf("mobulatest: close: %v", err)
		}
	})
	return c
}

// Start starts the node again, if it does not run.
func (n *Node) Start() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.cmd != nil {
		return nil
	}
	text, err := json.Marshal(n.told)
	if err != nil {
		return err
	}
	cmd := exec.Command("/proc/self/exe", "-test.run=^$")
	cmd.Env = append(os.Environ(), nodeEnv+"="+string(text))
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	late := time.AfterFunc(startTimeout, func() { _ = cmd.Process.Kill() }) // that ends the read below
	line, err := bufio.NewReader(stdout).ReadString('\n')
	late.Stop()
	addr, up := strings.CutPrefix(strings.TrimSpace(line), "up ")
	if !up {
		_ = stdin.Close()
		_ = cmd.Wait() // its output says more
		return errs.New(errs.CodeInvalid, "the node did not start: %q, %v; TestMain must use mobulatest.Main", line, err)
	}
	n.cmd, n.stdin, n.addr, n.frozen = cmd, stdin, addr, false
	return nil
}

// Kill ends the node's process without notice.
func (n *Node) Kill() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.killLocked()
}

func (n *Node) killLocked() error {
	if n.cmd == nil {
		return nil
	}
	if err := n.cmd.Process.Kill(); err != nil {
		return err
	}
	_ = n.cmd.Wait() // its error is the kill
	_ = n.stdin.Close()
	n.cmd = nil
	return nil
}

// Restart kills the node and starts it again.
func (n *Node) Restart() error {
	if err := n.Kill(); err != nil {
		return err
	}
	return n.Start()
}

// Freeze stops the node's process (SIGSTOP).
func (n *Node) Freeze() error { return n.signal(syscall.SIGSTOP, true) }

// Thaw lets it go on.
func (n *Node) Thaw() error { return n.signal(syscall.SIGCONT, false) }

func (n *Node) signal(sig syscall.Signal, frozen bool) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.cmd == nil || n.frozen == frozen {
		return nil
	}
	n.frozen = frozen
	return n.cmd.Process.Signal(sig)
}

// Stop stops the node in order; detached actors are there when it starts again.
func (n *Node) Stop() error {
	if err := n.Thaw(); err != nil {
		return err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.cmd == nil {
		return nil
	}
	late := time.AfterFunc(closeTimeout, func() { _ = n.cmd.Process.Kill() })
	defer late.Stop()
	if err := n.stdin.Close(); err != nil {
		return err
	}
	err := n.cmd.Wait()
	n.cmd = nil
	if err != nil {
		return fmt.Errorf("the node did not stop in order: %w", err)
	}
	return nil
}

// nodeMain runs the node, if this process should be one, until its input ends.
func nodeMain() bool {
	text := os.Getenv(nodeEnv)
	if text == "" {
		return false
	}
	if err := runNode(text); err != nil {
		_, _ = fmt.Fprintf(os.Stdout, "failed %v\n", err) // on an error the reader is gone
	}
	return true
}

func runNode(text string) error {
	if err := os.Unsetenv(nodeEnv); err != nil { // its workers must not become nodes
		return err
	}
	var t nodeSettings
	if err := json.Unmarshal([]byte(text), &t); err != nil {
		return err
	}
	settings := map[string]any{"dir": t.Dir, "store.size": t.Store, "workers.processes": true, "log.level": "error"}
	if t.CPUs != 0 {
		settings["cpus"] = t.CPUs
	}
	if len(t.Spill) > 0 {
		urls := make([]any, len(t.Spill))
		for i, u := range t.Spill {
			urls[i] = u
		}
		settings["store.spill"] = urls
	}
	cfg, _, err := node.LoadConfig(settings, nil)
	if err != nil {
		return err
	}
	cfg.Keep = true
	if t.Chaos != "" {
		plan, err := fault.Dial(t.Chaos)
		if err != nil {
			return err
		}
		defer plan.Close()
		cfg.Chaos = plan
	}
	ctx := context.Background()
	n, err := node.Start(ctx, cfg)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(os.Stdout, "up %s\n", n.Address()); err != nil {
		return err
	}
	_, _ = io.Copy(io.Discard, os.Stdin) // until the test is done
	return n.Close(ctx)
}
