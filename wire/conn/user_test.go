package conn

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"

	"mobula/internal/errs"
	"mobula/wire"
)

func init() {
	// Reads what the node says to a stranger and prints it, undecoded.
	children["stranger"] = func(path string) error {
		c, err := net.Dial("unix", path)
		if err != nil {
			return err
		}
		_, err = io.Copy(os.Stdout, c)
		return err
	}
	children["stranger-dial"] = func(path string) error {
		_, _, _, err := Dial(context.Background(), path, wire.Hello{}, Config{})
		if err == nil {
			return fmt.Errorf("another user's node was accepted")
		}
		_, err = fmt.Print(err)
		return err
	}
}

func TestConnectionOfAnotherUserIsRefused(t *testing.T) {
	l, err := Listen(socketPath(t), Config{})
	if err != nil {
		t.Fatal(err)
	}
	l.uid++ // serve another user than this process's, so that any connection is a stranger's
	go func() {
		_ = l.Serve(func(*wire.Hello, Peer) (*Session, error) {
			t.Error("a stranger came to the handshake")
			return nil, io.EOF
		})
	}()
	defer l.Close()
	c := rawClient(t, l)
	wantErr(t, bye(t, c), errs.ErrPermission, fmt.Sprint(l.uid), fmt.Sprint(os.Geteuid()), fmt.Sprint(os.Getpid()))
}

// As root it can be tried for real; for other users the kernel allows no such child.
func TestRealOtherUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Log("not root: TestConnectionOfAnotherUserIsRefused alone shows it")
		return
	}
	l := listen(t, Config{}, func(*wire.Hello, Peer) (*Session, error) {
		t.Error("another user came to the handshake")
		return nil, io.EOF
	})
	// Let the child come as far as the socket: every directory above, and the binary.
	exe := filepath.Join(filepath.Dir(filepath.Dir(l.Path())), "child")
	copyFile(t, os.Args[0], exe)
	if out, err := runAs(exe, "stranger", l.Path()); err == nil {
		t.Errorf("the directory let another user in: %q", out)
	}
	for dir := filepath.Dir(l.Path()); dir != os.TempDir() && dir != "/"; dir = filepath.Dir(dir) {
		if err := os.Chmod(dir, 0o711); err != nil {
			t.Fatal(err)
		}
	}
	denied, err := runAs(exe, "stranger-dial", l.Path())
	if err != nil {
		t.Fatal(err)
	}
	wantErr(t, errs.New(errs.CodePermission, "%s", denied), errs.ErrPermission, "is user 0's, this process is user 65534's", "permission denied")
	if err := os.Chmod(l.Path(), 0o666); err != nil {
		t.Fatal(err)
	}
	out, err := runAs(exe, "stranger", l.Path())
	if err != nil {
		t.Fatal(err)
	}
	msgs, err := received(out)
	if err != nil || len(msgs) != 1 || msgs[0].Kind() != wire.KindBye {
		t.Fatalf("the node said %v, %v; want Bye", msgs, err)
	}
	wantErr(t, msgs[0].(*wire.Bye).Err, errs.ErrPermission, "user 65534", "user 0")
	out, err = runAs(exe, "stranger-dial", l.Path())
	if err != nil {
		t.Fatal(err)
	}
	wantErr(t, errs.New(errs.CodePermission, "%s", out), errs.ErrPermission, "is user 0's, this process is user 65534's")
}

func runAs(exe, role, path string) ([]byte, error) {
	cmd := exec.Command(exe)
	cmd.Dir = "/"
	cmd.Env = []string{childEnv + "=" + role, childArg + "=" + path}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	out, err := cmd.Output()
	if x, ok := err.(*exec.ExitError); ok {
		err = fmt.Errorf("%w: %s", err, x.Stderr)
	}
	return out, err
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	data, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, data, 0o755); err != nil {
		t.Fatal(err)
	}
}

// heapOf is by how much the heap and the stacks in use shrink while f runs.
func heapOf(f func()) uint64 {
	inUse := func() uint64 {
		runtime.GC()
		runtime.GC() // the first one only moves pools to their victim cache
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc + m.StackInuse
	}
	before := inUse()
	f()
	return before - min(before, inUse())
}
