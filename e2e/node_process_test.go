package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"mobula/internal/node"
)

// A node process is this test binary started again with the node's configuration in its
// environment. It says "up" when it runs, its heap when it is asked for it, and ends when its input does, or by signal.
const nodeEnv = "MOBULA_E2E_NODE"

// nodeConfig is what can be said of a node in another process.
type nodeConfig struct {
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
		fail(err)
	}
	var c nodeConfig
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		fail(err)
	}
	ctx := context.Background()
	n, err := node.Start(ctx, node.Config{
		Dir: c.Dir, Keep: true, Moved: c.Moved, CPUs: c.CPUs, StoreBytes: c.Store, StoreDir: c.StoreDir, SpillURLs: c.Spill, Env: c.Workers, Processes: true, Logger: quiet(),
	})
	if err != nil {
		fail(err)
	}
	if _, err := io.WriteString(os.Stdout, "up "+n.Address()+"\n"); err != nil {
		fail(err)
	}
	for asked := bufio.NewScanner(os.Stdin); asked.Scan(); { // until the test is done
		debug.FreeOSMemory() // twice: what has a cleanup goes the second time
		debug.FreeOSMemory()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		if _, err := fmt.Println(m.HeapAlloc); err != nil {
			fail(err)
		}
	}
	if err := n.Close(ctx); err != nil {
		fail(err)
	}
	return true
}

func fail(err error) {
	_, _ = io.WriteString(os.Stdout, "failed "+err.Error()+"\n") // who reads it is gone otherwise
	os.Exit(1)
}

// nodeProcess is one.
type nodeProcess struct {
	cmd     *exec.Cmd
	stdin   io.WriteCloser
	stdout  *bufio.Reader
	address string
	over    bool
}

// launch starts a node process. The error is what it says of why it did not come up.
func launch(t *testing.T, c nodeConfig) (*nodeProcess, error) {
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
	p := &nodeProcess{cmd: cmd, stdin: stdin, stdout: bufio.NewReader(stdout)}
	t.Cleanup(func() { p.stop(t) })
	late := time.AfterFunc(30*time.Second, func() { _ = cmd.Process.Kill() }) // then the read below ends
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
	p.address = strings.TrimPrefix(line, "up ")
	return p, nil
}

func mustLaunch(t *testing.T, c nodeConfig) *nodeProcess {
	t.Helper()
	p, err := launch(t, c)
	if err != nil {
		t.Fatalf("node process: %v", err)
	}
	return p
}

// heap is what is alive in the process's heap, in bytes.
func (p *nodeProcess) heap(t *testing.T) int {
	t.Helper()
	if _, err := io.WriteString(p.stdin, "heap\n"); err != nil {
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

// kill ends the process without notice.
func (p *nodeProcess) kill(t *testing.T) {
	t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	p.wait()
}

func (p *nodeProcess) wait() {
	if !p.over {
		p.over = true
		_ = p.cmd.Wait() // that it was killed is known
		_ = p.stdin.Close()
	}
}

// stop ends the process in order.
func (p *nodeProcess) stop(t *testing.T) {
	if p.over {
		return
	}
	if err := p.stdin.Close(); err != nil {
		t.Error(err)
	}
	late := time.AfterFunc(30*time.Second, func() { _ = p.cmd.Process.Kill() })
	defer late.Stop()
	p.over = true
	if err := p.cmd.Wait(); err != nil {
		t.Errorf("node process: %v", err)
	}
}
