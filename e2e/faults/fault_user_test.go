package faults

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"mobula"
	"mobula/e2e/harness"
	"mobula/internal/node"
)

// strangerEnv makes this binary one that connects to a node, without the library and with it,
// and says what it hears.
const strangerEnv = "MOBULA_E2E_STRANGER"

func strangerMain() bool {
	address := os.Getenv(strangerEnv)
	if address == "" {
		return false
	}
	ctx := context.Background()
	c, err := net.Dial("unix", address)
	if err == nil {
		_, err = io.Copy(os.Stdout, c)
	}
	fmt.Println("\nraw:", err)
	d, err := mobula.Connect(ctx, address, mobula.ConnectLogger(harness.Quiet()))
	if err == nil {
		err = d.Close(ctx)
	}
	fmt.Println("library:", errors.Is(err, mobula.ErrPermission), err)
	return true
}

// Another user's process is refused by the node itself, even where the file system would let it in.
func TestFaultAnotherUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Log("only root can start a process of another user; package wire shows it with a peer of another number")
		return
	}
	ctx, cancel := harness.Limit(t)
	defer cancel()
	n, ctx := harness.StartNode(t, ctx, node.Config{CPUs: 1, StoreBytes: 16 * harness.MiB})
	place := harness.TempDir(t)
	exe := filepath.Join(place, "stranger")
	data, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(exe, data, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(place, 0o755); err != nil {
		t.Fatal(err)
	}
	stranger := func() string {
		cmd := exec.CommandContext(ctx, exe)
		cmd.Dir, cmd.Env = "/", []string{strangerEnv + "=" + n.Address()}
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return string(out)
	}
	if out := stranger(); !strings.Contains(out, "raw: dial unix") || strings.Contains(out, "library: false") {
		t.Errorf("the directory lets another user in: %q", out)
	}
	for path, mode := range map[string]os.FileMode{filepath.Dir(n.Address()): 0o711, n.Address(): 0o666} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	if out := stranger(); !strings.Contains(out, "serves user 0, the connection is user 65534's") || !strings.Contains(out, "library: true") {
		t.Errorf("another user hears %q", out)
	}
	harness.Works(t, ctx)
}
