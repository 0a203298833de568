package languages

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"mobula/e2e/harness"
	"mobula/internal/state"
	"mobula/internal/testkit"
)

// builtCommand builds the command mobula.
func builtCommand(t *testing.T) string {
	t.Helper()
	path := filepath.Join(harness.TempDir(t), "mobula")
	cmd := exec.CommandContext(t.Context(), "go", "build", "-buildvcs=false", "-o", path, "../../cmd/mobula")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return path
}

// hidingNode starts a node that does not see what is below some directories. It gives the node's address for drivers, and for other nodes.
func hidingNode(t *testing.T, command, dir string, cpus int, hidden []string, more ...string) (address, at string) {
	t.Helper()
	args := append([]string{
		"start", "--detach", "--json", "--name", filepath.Base(dir), "--dir", dir, "--cpus", fmt.Sprint(cpus), "--store-size", "64MiB", "--store-dir", filepath.Dir(dir),
		"--listen", fmt.Sprintf("127.0.0.1:%d", testkit.Ports(t, 4)),
	}, more...)
	script := `for d in $HIDDEN; do mount -t tmpfs -o mode=700 none "$d" || exit 1; done; exec "$@"`
	cmd := exec.CommandContext(t.Context(), "sh", append([]string{"-c", script, "sh", command}, args...)...)
	cmd.Env = append(os.Environ(), "HIDDEN="+strings.Join(hidden, " "), "MOBULA_CONFIG=/dev/null")
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	var s struct {
		Address, Cluster string
		PID              int
	}
	if err == nil {
		err = json.Unmarshal(out, &s)
	}
	if err != nil {
		t.Fatalf("node %s: %v: %s%s", dir, err, out, stderr.String())
	}
	t.Cleanup(func() {
		if out, err := exec.Command(command, "stop", "--address", s.Address).CombinedOutput(); err != nil {
			t.Errorf("stop node %s: %v: %s", dir, err, out)
			_ = syscall.Kill(s.PID, syscall.SIGKILL) // it may have ended
		}
	})
	return s.Address, s.Cluster
}

// asked runs the command for a node, and reads the JSON that it prints.
func asked[T any](t *testing.T, command, address string, args ...string) (out T) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), command, append(args, "--address", address, "--json")...)
	cmd.Env = append(os.Environ(), "MOBULA_CONFIG=/dev/null")
	text, err := cmd.Output()
	if err == nil {
		err = json.Unmarshal(text, &out)
	}
	if err != nil {
		t.Fatalf("mobula %s: %v: %s", strings.Join(args, " "), err, text)
	}
	return out
}

// Two nodes that see none of each other's files, and of which the second does not see the programs either, run a Go program and a Python program together, by the
// commands of a user.
func TestNodesNeedNotShareFiles(t *testing.T) {
	if !harness.InMounts(t) {
		return
	}
	command := builtCommand(t)
	base := harness.TempDir(t)
	first, second := filepath.Join(base, "first"), filepath.Join(base, "second")
	python, err := filepath.Abs("../../python")
	harness.Must(t, err)
	exe, hash := anotherExecutable(t, "alone")
	program := copyOwnModules(t)
	goProgram, goHash := anotherExecutable(t, "of Python's")
	for _, dir := range []string{first, second} {
		harness.Must(t, os.Mkdir(dir, 0o700))
	}
	one, at := hidingNode(t, command, first, 1, []string{second})
	token := asked[state.MadeToken](t, command, one, "token", "create").Token
	t.Setenv("MOBULA_TOKEN", token)
	two, _ := hidingNode(t, command, second, 2, []string{first, filepath.Dir(exe), program, filepath.Dir(goProgram), python}, "--join", at)
	nodes := []string{one, two}
	for deadline := time.Now().Add(testkit.Patience()); len(asked[state.Page[state.Node]](t, command, one, "list", "nodes").Rows) < 2; {
		if time.Now().After(deadline) {
			t.Fatal("the first node does not know of the second")
		}
	}
	t.Run("Go", func(t *testing.T) { everywhere(t, nodes, exe, hash) })
	t.Run("Python", func(t *testing.T) { ownModulesEverywhere(t, nodes, program, goProgram, goHash, "template") })
}
