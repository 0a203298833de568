package guard

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"mobula/internal/pidfd"
	"mobula/internal/testkit"
)

// TestMain is what this binary is in its other life: a node.
func TestMain(m *testing.M) {
	if os.Getenv("GUARD_TEST") != "" {
		asNode()
	}
	goleak.VerifyTestMain(m)
}

// asNode starts a worker with a guard, says which processes there are, and waits to be killed.
func asNode() {
	g := New("node", slog.New(slog.DiscardHandler))
	g.Prepare()
	w, pids, err := begin(g, "1")
	if err != nil {
		panic(err)
	}
	fmt.Println(g.PID(), w.Process.Pid, strings.Join(pids, " "))
	_, _ = io.Copy(io.Discard, os.Stdin)
	os.Exit(0)
}

// family is a worker with four children: a plain one, one that has changed its environment, one with a session of its own, and a daemon, whose
// parent has ended. It says who they are, and waits.
const family = `
sleep 1000 & echo $!
env -i sleep 1000 & echo $!
setsid sh -c 'echo $$; exec sleep 1000' &
(setsid sh -c 'echo $$; exec sleep 1000' &)
wait`

// begin starts a worker, as a launcher does.
func begin(g *Guard, name string) (*exec.Cmd, []string, error) {
	cmd := exec.Command("sh", "-c", family)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), g.Environ(name)}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return nil, nil, err
	}
	g.Begin(name, cmd.Process.Pid)
	var pids []string
	for sc := bufio.NewScanner(out); len(pids) < 4 && sc.Scan(); {
		pids = append(pids, sc.Text())
	}
	return cmd, pids, nil
}

// worker is begin in a test, which it leaves with nothing that runs.
func worker(t *testing.T, g *Guard, name string) (cmd *exec.Cmd, pids []int, wait func()) {
	t.Helper()
	cmd, text, err := begin(g, name)
	if err != nil {
		t.Fatal(err)
	}
	pids = numbers(t, text)
	wait = sync.OnceFunc(func() { _ = cmd.Wait() })
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		wait()
		killAll(pids)
	})
	if len(pids) != 4 {
		t.Fatalf("the worker has the children %v", pids)
	}
	return cmd, pids, wait
}

func killAll(pids []int) {
	for _, pid := range pids {
		if p, err := pidfd.Open(pid); err == nil {
			_ = p.Kill(unix.SIGKILL)
			p.Close()
		}
	}
}

func numbers(t *testing.T, text []string) (out []int) {
	t.Helper()
	for _, s := range text {
		n, err := strconv.Atoi(s)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, n)
	}
	return out
}

func start(t *testing.T) *Guard {
	t.Helper()
	g := New("node", slog.New(slog.DiscardHandler))
	g.Prepare()
	t.Cleanup(func() { end(t, g) })
	return g
}

func end(t *testing.T, g *Guard) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), testkit.Patience())
	defer cancel()
	if err := g.Close(ctx); err != nil {
		t.Error(err)
	}
}

func gone(t *testing.T, what string, pids ...int) {
	t.Helper()
	for _, pid := range pids {
		if !pidfd.Await(t.Context(), pid, testkit.Patience()) {
			t.Errorf("%s: process %d lives", what, pid)
		}
	}
}

func alive(t *testing.T, what string, pids ...int) {
	t.Helper()
	for _, pid := range pids {
		if pidfd.Gone(pid) {
			t.Errorf("%s: process %d is gone", what, pid)
		}
	}
}

// After kill -9 of a node no process of its workers is left, nor the guard; processes of another node's workers go on.
func TestAKilledNodeLeavesNothing(t *testing.T) {
	other := start(t)
	_, others, _ := worker(t, other, "1")
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), "GUARD_TEST=1")
	ours, theirs, err := os.Pipe() // which the node does not keep to itself
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = ours.Close() }()
	cmd.ExtraFiles = []*os.File{theirs}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = in.Close() }()
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	_ = theirs.Close()
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	pids := numbers(t, strings.Fields(line))
	defer killAll(pids)
	if len(pids) != 6 {
		t.Fatalf("guard, worker and children: %v", pids)
	}
	alive(t, "before", pids...)
	mine, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", ours.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, "without "+mine+", which the node had inherited: the guard may just have been started", func() bool {
		return !slices.Contains(descriptors(t, pids[0]), mine)
	})
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it was killed
	gone(t, "after the node was killed", pids...)
	alive(t, "of another node", others...)
}

func descriptors(t *testing.T, pid int) (out []string) {
	t.Helper()
	all, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	if err != nil || len(all) < 3 {
		t.Fatalf("descriptors of %d: %v, %v", pid, all, err)
	}
	for _, path := range all {
		if to, err := os.Readlink(path); err == nil {
			out = append(out, to)
		}
	}
	return out
}

// Processes that a worker has started end with it, and none of its neighbour; a child without its group and its mark stays.
func TestWhatAWorkerLeavesGoesWithIt(t *testing.T) {
	g := start(t)
	w, left, wait := worker(t, g, "1")
	_, others, _ := worker(t, g, "11")
	away := exec.Command("setsid", "sleep", "1000")
	away.Env = []string{"PATH=" + os.Getenv("PATH")}
	if err := away.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = away.Process.Kill(); _ = away.Wait() }()
	if err := unix.Kill(-w.Process.Pid, unix.SIGKILL); err != nil { // as the launcher does while it is a zombie
		t.Fatal(err)
	}
	wait()
	g.End("1")
	gone(t, "of the worker", left...)
	alive(t, "of another worker", others...)
	end(t, g)
	gone(t, "after Close, by their mark", others[0], others[2], others[3])
	alive(t, "of nobody", away.Process.Pid)
}

// A guard that is killed is replaced, and the next one knows which workers there are.
func TestAGuardThatIsKilledIsReplaced(t *testing.T) {
	g := start(t)
	_, left, _ := worker(t, g, "1")
	first := g.PID()
	if err := unix.Kill(first, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, "another guard for the one that was killed", func() bool { return g.PID() != 0 && g.PID() != first })
	end(t, g)
	gone(t, "after Close", left...)
}

// A stopped guard delays neither workers nor, beyond a bound, the node's end.
func TestAStoppedGuardHoldsNobodyUp(t *testing.T) {
	g := start(t)
	if err := unix.Kill(g.PID(), unix.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	for i := range 20_000 { // more than a pipe holds
		g.Begin(strconv.Itoa(i), 1)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := g.Close(ctx); err == nil {
		t.Error("a stopped guard ended")
	}
}

// If node and guard were killed together, the node's next start kills the remaining processes.
func TestTheNextLifeSweeps(t *testing.T) {
	g := New("swept", slog.New(slog.DiscardHandler)) // without a process
	_, left, _ := worker(t, g, "1")
	_, others, _ := worker(t, New("swept2", slog.New(slog.DiscardHandler)), "1")
	if n := Sweep("swept"); n < 4 {
		t.Errorf("%d were killed", n)
	}
	gone(t, "after the sweep", left[0], left[2], left[3])
	alive(t, "of another node", others...)
}

// A worker of a node that runs in a worker has the marks of both.
func TestMarksOfNestedNodes(t *testing.T) {
	t.Setenv(Variable, "outer.life.7")
	kv := New("inner", slog.New(slog.DiscardHandler)).Environ("3")
	have := marksIn("A=1\x00" + kv + "\x00B=2\x00")
	if len(have) != 2 || !below("outer")(have[0]) || !below("inner")(have[1]) || below("out")(have[0]) {
		t.Errorf("%q has the marks %q", kv, have)
	}
	if m := marksIn("A=" + Variable + "=x\x00"); m != nil {
		t.Errorf("marks of another variable: %q", m)
	}
}
