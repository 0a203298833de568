package node

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"mobula/internal/errs"
	"mobula/internal/safefs"
	"mobula/internal/testkit"
	"mobula/wire"
)

// holdEnv makes the test's binary a process that has a directory until its input ends.
const holdEnv = "MOBULA_TEST_HOLD"

func hold(dir string) {
	n, err := Start(context.Background(), Config{Dir: dir, NoGCS: true, StoreBytes: 16 << 20})
	if err == nil {
		_, err = n.Attach(context.Background(), "")
	}
	fmt.Println("held", err)
	_, _ = io.Copy(io.Discard, os.Stdin) // the test kills it
}

func startIn(t *testing.T, cfg Config) (*Node, error) {
	t.Helper()
	cfg.NoGCS, cfg.StoreBytes, cfg.StoreDir = true, 16<<20, t.TempDir()
	n, err := Start(t.Context(), cfg)
	if err == nil {
		t.Cleanup(func() { closeNode(t, n) })
	}
	return n, err
}

func closeNode(t *testing.T, n *Node) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), testkit.Patience())
	defer cancel()
	if err := n.Close(ctx); err != nil {
		t.Error(err)
	}
}

// tree lists what is below a directory.
func tree(t *testing.T, dir string) (paths []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		if rel, e := filepath.Rel(dir, path); e == nil && rel != "." {
			paths = append(paths, rel)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return paths
}

// One node a directory, embedded or kept: the second is refused before it opens anything.
func TestASecondNodeInADirectoryIsRefused(t *testing.T) {
	for _, keep := range []bool{false, true} {
		dir := filepath.Join(t.TempDir(), "n")
		n, err := startIn(t, Config{Dir: dir, Keep: keep})
		if err != nil {
			t.Fatal(err)
		}
		c, err := n.Attach(t.Context(), "")
		if err != nil {
			t.Fatal(err)
		}
		before := tree(t, dir)
		for _, other := range []bool{false, true} {
			_, err = startIn(t, Config{Dir: dir, Keep: other})
			if !errors.Is(err, errs.ErrNodeRunning) || !strings.Contains(err.Error(), dir) || !strings.Contains(err.Error(), fmt.Sprintf("this process (%d)", os.Getpid())) {
				t.Errorf("keep %v, second keep %v: %v", keep, other, err)
			}
		}
		if err := CheckDir(dir); !errors.Is(err, errs.ErrNodeRunning) {
			t.Errorf("CheckDir: %v", err)
		}
		if after := tree(t, dir); !slices.Equal(before, after) {
			t.Errorf("the second changed the directory from %q to %q", before, after)
		}
		h, err := c.Put(t.Context(), wire.Value{Data: []byte("x")})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Get1(t.Context(), h); err != nil {
			t.Errorf("the first does not work any more: %v", err)
		}
		if err := c.Close(t.Context()); err != nil {
			t.Error(err)
		}
		closeNode(t, n)
		next, err := startIn(t, Config{Dir: dir, Keep: keep})
		if err != nil {
			t.Fatalf("after the first has ended: %v", err)
		}
		closeNode(t, next)
	}
}

// The error names the process that has the directory. When that was killed the directory is
// free, and what it left is gone.
func TestTheDirectoryOfAnotherProcess(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "n")
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), holdEnv+"="+dir)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = in.Close(); _ = cmd.Process.Kill(); _ = cmd.Wait() }) // most likely it is gone
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "held <nil>\n" {
		t.Fatalf("the other process says %q, %v", line, err)
	}
	_, err = startIn(t, Config{Dir: dir})
	if want := fmt.Sprintf("process %d", cmd.Process.Pid); !errors.Is(err, errs.ErrNodeRunning) || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want one that names %s", err, want)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // killed
	left := filepath.Join(dir, "owner", "7")
	if err := os.MkdirAll(left, 0o700); err != nil {
		t.Fatal(err)
	}
	n, err := startIn(t, Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	if safefs.Exists(left) {
		t.Error("what the killed node left is still there")
	}
	closeNode(t, n)
}

// A node inside a program leaves a directory as it found it.
func TestADirectoryIsLeftAsItWas(t *testing.T) {
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"logs/mine", "other"} {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, nil, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	before := tree(t, dir)
	made := filepath.Join(t.TempDir(), "made")
	for _, d := range []string{dir, made, ""} {
		n, err := startIn(t, Config{Dir: d})
		if err != nil {
			t.Fatal(err)
		}
		c, err := n.Attach(t.Context(), "")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Put(t.Context(), wire.Value{Data: []byte("x")}); err != nil {
			t.Fatal(err)
		}
		if err := c.Close(t.Context()); err != nil {
			t.Error(err)
		}
		closeNode(t, n)
		if d == "" && safefs.Exists(n.dir) {
			t.Errorf("%s is still there", n.dir)
		}
	}
	if after := tree(t, dir); !slices.Equal(before, after) {
		t.Errorf("the directory had %q, it has %q", before, after)
	}
	if safefs.Exists(made) {
		t.Errorf("the directory that the node made has %q", tree(t, made))
	}
}

// A test's own directory, which others may read, is a node's while that runs, however long its name is.
func TestATestsOwnDirectory(t *testing.T) {
	long := filepath.Join(t.TempDir(), strings.Repeat("x", 120))
	if err := os.Mkdir(long, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{t.TempDir(), long} {
		for range 2 {
			n, err := startIn(t, Config{Dir: dir})
			if err != nil {
				t.Fatal(err)
			}
			if fi, err := os.Stat(dir); err != nil || fi.Mode().Perm() != 0o700 {
				t.Errorf("while it runs: %v, %v", fi.Mode(), err)
			}
			d, err := Dial(t.Context(), dir, DialConfig{})
			if err != nil {
				t.Fatal(err)
			}
			if err := d.Close(t.Context()); err != nil {
				t.Error(err)
			}
			closeNode(t, n)
			fi, err := os.Stat(dir)
			if err != nil || fi.Mode().Perm() != 0o755 || len(tree(t, dir)) > 1 {
				t.Errorf("it is left with mode %v and %q, %v", fi.Mode(), tree(t, dir), err)
			}
		}
	}
	if err := os.WriteFile(filepath.Join(long, "mine"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := startIn(t, Config{Dir: long}); !errors.Is(err, errs.ErrPermission) || !strings.Contains(err.Error(), "chmod 700") {
		t.Errorf("in one with others' files: %v", err)
	}
}

func TestResolve(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct{ said, address, dir, want string }{
		{"", "", "", DefaultAddress()},
		{"", "", "/d", "/d/node.sock"},
		{"", "/a.sock", "/d", "/a.sock"},
		{"", dir, "/d", filepath.Join(dir, SocketName)},
		{"/s.sock", "/a.sock", "/d", "/s.sock"},
		{dir, "/a.sock", "/d", filepath.Join(dir, SocketName)},
	} {
		env := map[string]string{"MOBULA_ADDRESS": c.address, "MOBULA_DIR": c.dir}
		if got := Resolve(c.said, func(name string) string { return env[name] }); got != c.want {
			t.Errorf("%+v: %s", c, got)
		}
	}
}

// A node inside a program does not end the state of one that runs by itself.
func TestAKeptNodesDirectoryIsNotForPrograms(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "n")
	kept, err := startIn(t, Config{Dir: dir, Keep: true})
	if err != nil {
		t.Fatal(err)
	}
	closeNode(t, kept)
	before := tree(t, dir)
	if _, err := startIn(t, Config{Dir: dir}); !errors.Is(err, errs.ErrInvalid) || !strings.Contains(err.Error(), dir) {
		t.Errorf("got %v", err)
	}
	if after := tree(t, dir); !slices.Equal(before, after) {
		t.Errorf("the kept node had %q, has %q", before, after)
	}
}

// What a killed program left is removed, but not where the lock says that somebody lives: the
// process may be in another container.
func TestOnlyDeadDirectoriesAreCleaned(t *testing.T) {
	root := t.TempDir()
	const gone = 1 << 30 // above every process id
	dead, alive := filepath.Join(root, fmt.Sprintf("node-%d-a", gone)), filepath.Join(root, fmt.Sprintf("node-%d-b", gone))
	if err := os.Mkdir(dead, 0o700); err != nil {
		t.Fatal(err)
	}
	l, err := lockDir(alive)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()                              // a lock only
	within := filepath.Join(root, fmt.Sprintf("node-%d-c", gone)) // a node that lives is in a directory of a dead process
	in, err := lockDir(filepath.Join(within, "0"))
	if err != nil {
		t.Fatal(err)
	}
	cleanDead(root)
	if safefs.Exists(dead) || !safefs.Exists(alive) || !safefs.Exists(within) {
		t.Errorf("left are %q, want only %s and %s", tree(t, root), filepath.Base(alive), filepath.Base(within))
	}
	if err := in.Close(); err != nil {
		t.Fatal(err)
	}
	if cleanDead(root); safefs.Exists(within) {
		t.Errorf("left are %q, want only %s", tree(t, root), filepath.Base(alive))
	}
}

// A process that a node was starting when it was killed has the node's lock until it runs its own program: the next node waits for that.
func TestALockThatADeadNodesChildHasIsWaitedFor(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "n")
	l, err := lockDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	dead := exec.Command("true")
	if err := dead.Run(); err != nil {
		t.Fatal(err)
	}
	if _, err := l.WriteAt(fmt.Appendf(nil, "%-10d", dead.Process.Pid), 0); err != nil {
		t.Fatal(err)
	}
	child := exec.Command("sleep", "0.3")
	child.ExtraFiles = []*os.File{l}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	next, err := lockDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(next.Close(), child.Wait()); err != nil {
		t.Error(err)
	}
}
