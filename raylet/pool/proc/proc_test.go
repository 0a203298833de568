package proc

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"mobula/internal/errs"
	"mobula/internal/guard"
	"mobula/internal/ids"
	"mobula/internal/testkit"
	"mobula/raylet/pool"
	"mobula/raylet/sched"
)

// TestMain also makes this binary a worker, or a node that starts workers.
func TestMain(m *testing.M) {
	switch life := os.Getenv("PROC_TEST"); {
	case life == "node":
		node()
	case strings.HasPrefix(life, "template-"):
		asTemplate(strings.TrimPrefix(life, "template-"))
	case life != "":
		worker(life)
	}
	goleak.VerifyTestMain(m)
}

// worker does what its environment says and ends.
func worker(life string) {
	switch life {
	case "env":
		for _, kv := range os.Environ() {
			if strings.HasPrefix(kv, guard.Variable+"=node.") && strings.HasSuffix(kv, "."+os.Getenv(EnvID)) {
				fmt.Println("marked")
			} else if strings.HasPrefix(kv, "MOBULA_") && !strings.HasPrefix(kv, "MOBULA_TEST_") || strings.HasPrefix(kv, "GOMEMLIMIT") {
				fmt.Println(kv)
			}
		}
	case "name":
		fmt.Print(os.Args)
	case "fail":
		fmt.Fprint(os.Stderr, strings.Repeat("x", 3*TailSize), "the last words")
		os.Exit(3)
	case "polite":
		c := make(chan os.Signal, 1)
		signal.Notify(c, syscall.SIGTERM)
		fmt.Println("ready")
		<-c
		os.Exit(7)
	case "parent":
		cmd := exec.Command("/proc/self/exe")
		cmd.Env = []string{"PROC_TEST=stay"}
		if err := cmd.Start(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		fmt.Println(cmd.Process.Pid)
	case "stay":
		for { // not select {}: alone, it is a deadlock to the runtime
			time.Sleep(time.Hour)
		}
	}
	os.Exit(0)
}

// node starts three workers, prints their pids and waits to be killed.
func node() {
	l, err := New(Config{Args: []string{}, Env: []string{"PROC_TEST=stay"}, Socket: "none", Post: func(pool.Event) {}})
	if err != nil {
		panic(err)
	}
	for i := range 3 {
		l.Start(pool.StartProcess{Worker: ids.WorkerID(i + 1)})
	}
	for n := 0; n < 3; {
		n = 0
		for _, p := range l.Live() {
			if p.PID > 0 {
				n++
			}
		}
		runtime.Gosched()
	}
	for _, p := range l.Live() {
		fmt.Println(p.PID)
	}
	select {}
}

// launch makes a launcher whose workers behave as life says, and the channel of its events.
func launch(t *testing.T, life string, change func(*Config)) (*Launcher, chan pool.Event, string) {
	t.Helper()
	events := make(chan pool.Event, 100)
	dir := t.TempDir()
	cfg := Config{
		Args: []string{}, Env: []string{}, More: append(os.Environ(), "GOCOVERDIR="+t.TempDir(), "PROC_TEST="+life, "MOBULA_WORKER_TOKEN=of-another", guard.Variable+"=of-another"),
		Socket: "/run/node.sock", Node: "node", LogDir: dir, Post: func(e pool.Event) { events <- e },
	}
	if change != nil {
		change(&cfg)
	}
	l, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), testkit.Patience())
		defer cancel()
		if err := l.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	return l, events, dir
}

func next(t *testing.T, events chan pool.Event) pool.Event {
	t.Helper()
	return testkit.Receive(t, "posted", events)
}

func TestEnvironmentTellsTheWorkerWhatItIs(t *testing.T) {
	l, events, dir := launch(t, "env", nil)
	l.Start(pool.StartProcess{Worker: 12, Token: []byte{0xab, 1}, Job: 3, Slot: sched.SlotOwn, Func: "train", Memory: 1000})
	if e := next(t, events).(pool.Exited); e.Exit.Status != 0 || e.Exit.Signal != "" || e.Worker != 12 || e.Exit.PID == 0 {
		t.Fatalf("%+v", e)
	}
	raw, err := os.ReadFile(filepath.Join(dir, "worker-12.out"))
	if err != nil {
		t.Fatal(err)
	}
	want := "MOBULA_WORKER_SOCKET=/run/node.sock\nMOBULA_WORKER_TOKEN=ab01\nMOBULA_WORKER_ID=12\nMOBULA_WORKER_JOB=3\nMOBULA_WORKER_KIND=isolated\nmarked\nMOBULA_WORKER_FUNC=train\nGOMEMLIMIT=900\n"
	if string(raw) != want {
		t.Fatalf("environment\n%swant\n%s", raw, want)
	}
	if len(l.Live()) != 0 {
		t.Error("a process that is gone is still listed")
	}
	if _, err := os.Stat(filepath.Join(dir, "worker-12.err")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file for nothing written: %v", err)
	}
}

func TestAProgramIsCalledByItsOwnName(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(t.TempDir(), "program")
	if err := os.Symlink(exe, link); err != nil {
		t.Fatal(err)
	}
	l, events, dir := launch(t, "name", func(c *Config) {
		c.Program = func(ids.JobID, string) (Program, error) { return Program{Exe: link, Args: []string{"of", "job"}}, nil }
	})
	l.Start(pool.StartProcess{Worker: 1})
	if e := next(t, events).(pool.Exited); e.Exit.Status != 0 {
		t.Fatalf("%+v", e)
	}
	raw, err := os.ReadFile(filepath.Join(dir, "worker-1.out"))
	if want := fmt.Sprint([]string{link, "of", "job"}); err != nil || string(raw) != want {
		t.Errorf("called as %s, %v, want %s", raw, err, want)
	}
}

func TestExitQuotesTheEndOfStderr(t *testing.T) {
	l, events, dir := launch(t, "fail", nil)
	l.Start(pool.StartProcess{Worker: 1})
	e := next(t, events).(pool.Exited).Exit
	if e.Status != 3 || len(e.Tail) != TailSize || !strings.HasSuffix(e.Tail, "xthe last words") {
		t.Fatalf("%d, %d bytes of tail, %q", e.Status, len(e.Tail), e.Tail[max(0, len(e.Tail)-20):])
	}
	if !strings.HasPrefix(e.String(), "exited with status 3; the end of its stderr: x") {
		t.Errorf("%.60s", e)
	}
	if st, err := os.Stat(filepath.Join(dir, "worker-1.err")); err != nil || st.Size() != 3*TailSize+14 || st.Mode().Perm() != 0o600 {
		t.Errorf("log: %+v, %v", st, err)
	}
}

func TestKillAndTerminate(t *testing.T) {
	l, events, dir := launch(t, "polite", nil)
	l.Start(pool.StartProcess{Worker: 1})
	l.Start(pool.StartProcess{Worker: 2})
	for _, w := range []string{"1", "2"} {
		testkit.Eventually(t, "worker "+w+" is ready", func() bool {
			b, _ := os.ReadFile(filepath.Join(dir, "worker-"+w+".out"))
			return string(b) == "ready\n"
		})
	}
	l.Registered(2, 77)
	l.Terminate(1)
	if e := next(t, events).(pool.Exited); e.Worker != 1 || e.Exit.Status != 7 {
		t.Fatalf("%+v", e)
	}
	l.Draining(2)
	if live := l.Live(); len(live) != 1 || live[0].Client != 77 || live[0].PID == 0 || !live[0].Draining {
		t.Fatalf("%+v", live)
	}
	l.Kill(2)
	if e := next(t, events).(pool.Exited); e.Worker != 2 || e.Exit.Signal != "killed" {
		t.Fatalf("%+v", e)
	}
	l.Kill(2) // it is gone: no other process may be hit
}

func TestWhatCannotBeStartedIsSaid(t *testing.T) {
	l, events, _ := launch(t, "env", func(c *Config) { c.Exe = "/nowhere/mobula" })
	l.Start(pool.StartProcess{Worker: 1})
	if e := next(t, events).(pool.StartFailed); e.Worker != 1 || !errors.Is(e.Err, os.ErrNotExist) || !strings.Contains(e.Err.Error(), "/nowhere/mobula") {
		t.Fatalf("%+v", e)
	}
	if err := l.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	l.Start(pool.StartProcess{Worker: 2})
	if e := next(t, events).(pool.StartFailed); !errors.Is(e.Err, errs.ErrShutdown) {
		t.Fatalf("%+v", e)
	}
	if _, err := New(Config{}); !errors.Is(err, errs.ErrInvalid) {
		t.Errorf("no socket: %v", err)
	}
}

func TestChildrenOfAWorkerGoWithIt(t *testing.T) {
	l, events, dir := launch(t, "parent", nil)
	l.Start(pool.StartProcess{Worker: 1})
	if e := next(t, events).(pool.Exited); e.Exit.Status != 0 {
		t.Fatalf("%+v", e)
	}
	raw, err := os.ReadFile(filepath.Join(dir, "worker-1.out"))
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(raw)))
	if err != nil {
		t.Fatal(err)
	}
	gone(t, pid)
}

// The threads of the node come and go; the workers stay.
func TestWorkersOutliveThreads(t *testing.T) {
	l, events, _ := launch(t, "stay", nil)
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
			l.Start(pool.StartProcess{Worker: ids.WorkerID(i + 1)})
		})
	}
	wg.Wait()
	for started := 0; started < 4; {
		started = 0
		for _, p := range l.Live() {
			if p.PID > 0 {
				started++
			}
		}
		runtime.Gosched()
	}
	for range 20 {
		wg.Go(func() { runtime.LockOSThread() })
	}
	wg.Wait()
	select {
	case e := <-events:
		t.Fatalf("a worker went with a thread: %+v", e)
	default:
	}
	for _, p := range l.Live() {
		if err := unix.Kill(int(p.PID), 0); err != nil {
			t.Errorf("worker %d: %v", p.Worker, err)
		}
	}
}

// kill -9 of the node: the kernel kills the workers with it.
func TestKilledNodeLeavesNoWorker(t *testing.T) {
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = []string{"PROC_TEST=node"}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var pids []int
	for sc := bufio.NewScanner(out); len(pids) < 3 && sc.Scan(); {
		pid, err := strconv.Atoi(sc.Text())
		if err != nil {
			t.Fatal(err)
		}
		if err := unix.Kill(pid, 0); err != nil {
			t.Fatalf("worker %d is not there: %v", pid, err)
		}
		pids = append(pids, pid)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	cmd.Wait()
	if len(pids) != 3 {
		t.Fatalf("%d workers", len(pids))
	}
	for _, pid := range pids {
		gone(t, pid)
	}
}

// gone waits for a process that is not our child to have exited.
func gone(t *testing.T, pid int) {
	t.Helper()
	fd, err := unix.PidfdOpen(pid, 0)
	if err == unix.ESRCH {
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	for {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 20_000)
		switch {
		case err == unix.EINTR:
			continue
		case n == 0 || err != nil:
			t.Fatalf("process %d is left behind (%v)", pid, err)
		}
		return
	}
}
