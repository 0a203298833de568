package harness

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
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"mobula"
	"mobula/internal/node"
	"mobula/internal/testkit"
)

// A node process is this test binary started again with the node's configuration in its
// environment. It says "up" when it runs, its heap when it is asked for it, and ends when its input does, or by signal.
const nodeEnv = "MOBULA_E2E_NODE"

// NodeConfig is what can be said of a node in another process.
type NodeConfig struct {
	Dir      string
	CPUs     float64
	Store    uint64
	StoreDir string
	Spill    []string
	Env      []string // its own, beside the test's
	Workers  []string // added to its workers' environment
	UID      uint32   // whose it is; 0: the test's
	Moved    bool     // the directory was copied here
}

// nodeMain runs the node, if this process is to be one.
func nodeMain() bool {
	text := os.Getenv(nodeEnv)
	if text == "" {
		return false
	}
	if err := os.Unsetenv(nodeEnv); err != nil { // its workers are none
		Fail(err)
	}
	var c NodeConfig
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		Fail(err)
	}
	ctx := context.Background()
	n, err := node.Start(ctx, node.Config{
		Dir: c.Dir, Keep: true, Moved: c.Moved, CPUs: c.CPUs, StoreBytes: c.Store, StoreDir: c.StoreDir, SpillURLs: c.Spill, Env: c.Workers, Processes: true, Logger: Quiet(),
	})
	if err != nil {
		Fail(err)
	}
	if _, err := io.WriteString(os.Stdout, "up "+n.Address()+"\n"); err != nil {
		Fail(err)
	}
	for asked := bufio.NewScanner(os.Stdin); asked.Scan(); { // until the test is done
		debug.FreeOSMemory() // twice: what has a cleanup goes the second time
		debug.FreeOSMemory()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		if _, err := fmt.Println(m.HeapAlloc); err != nil {
			Fail(err)
		}
	}
	if err := n.Close(ctx); err != nil {
		Fail(err)
	}
	return true
}

// Fail ends a process that a test has started, with the reason for the test to read.
func Fail(err error) {
	_, _ = io.WriteString(os.Stdout, "failed "+err.Error()+"\n") // who reads it is gone otherwise
	os.Exit(1)
}

// NodeProcess is a node process, or another one that ends when its input does.
type NodeProcess struct {
	Cmd     *exec.Cmd
	Stdin   io.WriteCloser
	Address string // of a node
	stdout  *bufio.Reader
	over    bool
}

// Heap is what is alive in the process's heap, in bytes.
func (p *NodeProcess) Heap(t *testing.T) int {
	t.Helper()
	if _, err := io.WriteString(p.Stdin, "heap\n"); err != nil {
		t.Fatal(err)
	}
	line, err := p.stdout.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// Kill ends the process without notice.
func (p *NodeProcess) Kill(t *testing.T) {
	t.Helper()
	if err := p.Cmd.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	p.wait()
}

func (p *NodeProcess) wait() {
	if !p.over {
		p.over = true
		_ = p.Cmd.Wait() // that it was killed is known
		_ = p.Stdin.Close()
	}
}

// Stop ends the process in order.
func (p *NodeProcess) Stop(t *testing.T) {
	if p.over {
		return
	}
	if err := p.Stdin.Close(); err != nil {
		t.Error(err)
	}
	late := time.AfterFunc(testkit.Patience(), func() { _ = p.Cmd.Process.Kill() })
	defer late.Stop()
	p.over = true
	if err := p.Cmd.Wait(); err != nil {
		t.Errorf("node process: %v", err)
	}
}

// Leave ends the process by its input, and does not ask how it took that.
func (p *NodeProcess) Leave() {
	p.over = true
	_ = p.Stdin.Close()
	_ = p.Cmd.Wait()
}

// Launch starts a node process. The error is what it says of why it did not come up.
func Launch(t *testing.T, c NodeConfig) (*NodeProcess, error) {
	t.Helper()
	text, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("/proc/self/exe", "-test.run=^$")
	cmd.Env = append(append(os.Environ(), nodeEnv+"="+string(text)), c.Env...)
	cmd.Stderr = os.Stderr
	if c.UID != 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: c.UID, Gid: c.UID}}
	}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p := &NodeProcess{Cmd: cmd, Stdin: stdin, stdout: bufio.NewReader(stdout)}
	t.Cleanup(func() { p.Stop(t) })
	late := time.AfterFunc(testkit.Patience(), func() { _ = cmd.Process.Kill() }) // then the read below ends
	defer late.Stop()
	line, err := p.stdout.ReadString('\n')
	if err != nil {
		return p, err
	}
	line = strings.TrimSpace(line)
	if what, ok := strings.CutPrefix(line, "failed "); ok {
		p.wait()
		return p, errors.New(what)
	}
	p.Address = strings.TrimPrefix(line, "up ")
	return p, nil
}

// MustLaunch is Launch of a node that has to come up.
func MustLaunch(t *testing.T, c NodeConfig) *NodeProcess {
	t.Helper()
	p, err := Launch(t, c)
	if err != nil {
		t.Fatalf("node process: %v", err)
	}
	return p
}

// Connect joins a node process as a driver.
func Connect(t *testing.T, ctx context.Context, p *NodeProcess) (*mobula.Cluster, context.Context) {
	t.Helper()
	c, err := mobula.Connect(ctx, p.Address, mobula.ConnectLogger(Quiet()))
	if err != nil {
		t.Fatalf("connect: %v", err)
	}
	t.Cleanup(func() {
		if err := c.Close(context.WithoutCancel(ctx)); err != nil {
			t.Errorf("close of the driver: %v", err)
		}
	})
	return c, c.Context(ctx)
}

// WorkersOf lists the worker processes of the node that listens at the address.
func WorkersOf(address string) []int {
	procs, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		return nil
	}
	want := "MOBULA_WORKER_SOCKET=" + address + "\x00"
	var pids []int
	for _, p := range procs {
		env, err := os.ReadFile(p)
		if err != nil || !strings.Contains(string(env), want) {
			continue // gone, or another's
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(p))); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}
