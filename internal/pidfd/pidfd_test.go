package pidfd

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"testing"
	"time"

	"mobula/internal/testkit"

	"golang.org/x/sys/unix"
)

// child starts a process that waits for its input to end, and leaves it to be reaped by the returned function.
func child(t *testing.T) (pid int, end func(), reap func()) {
	t.Helper()
	cmd := exec.Command("cat")
	in, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	reap = func() { _ = cmd.Wait() }
	t.Cleanup(func() { _ = in.Close(); reap() })
	return cmd.Process.Pid, func() { _ = in.Close() }, reap
}

// A process is gone when it is, whatever keeps this one from a pidfd.
func TestOnlyItsEndMakesAProcessGone(t *testing.T) {
	system := openPidfd
	defer func() { openPidfd = system }()
	for name, open := range map[string]func(int, int) (int, error){
		"pidfd":          system,
		"no descriptors": func(int, int) (int, error) { return -1, unix.EMFILE },
		"no memory":      func(int, int) (int, error) { return -1, unix.ENOMEM },
		"a sandbox":      func(int, int) (int, error) { return -1, unix.EPERM },
		"an old kernel":  func(int, int) (int, error) { return -1, unix.ENOSYS },
	} {
		openPidfd = open
		pid, end, reap := child(t)
		start, gone := Start(pid)
		if gone || start == 0 || Gone(pid) || !Same(pid, start) || Same(pid, start+1) {
			t.Errorf("%s: a process that runs: start %d, gone %v %v", name, start, gone, Gone(pid))
		}
		if Await(t.Context(), pid, time.Millisecond) {
			t.Errorf("%s: a process that runs was awaited", name)
		}
		over, cancel := context.WithCancel(t.Context())
		cancel()
		if Await(over, pid, time.Hour) {
			t.Errorf("%s: a process that runs was awaited", name)
		}
		end()
		if !Await(t.Context(), pid, testkit.Patience()) || !Gone(pid) || Same(pid, start) {
			t.Errorf("%s: a process that nobody has waited for yet is not gone", name)
		}
		reap()
		if _, err := Open(pid); !errors.Is(err, ErrGone) || !Gone(pid) || !Await(t.Context(), pid, 0) {
			t.Errorf("%s: after its end: %v", name, err)
		}
	}
	if Gone(os.Getpid()) {
		t.Error("this process is gone")
	}
}
