package guard

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// A process may fork and end while a sweep reads /proc. Its child is found, whatever the listing has of the two.
func TestASweepFindsTheChildOfOneThatEndsMeanwhile(t *testing.T) {
	system := processes
	t.Cleanup(func() { processes = system })
	for name, c := range map[string]struct{ reaped, listed bool }{
		"it is listed and gone":                           {true, true},
		"it is listed, and nobody has waited for it":      {false, true},
		"the child has a lower number, neither is listed": {true, false},
	} {
		t.Run(name, func(t *testing.T) {
			life := "fork." + strconv.FormatBool(c.reaped) + strconv.FormatBool(c.listed)
			cmd := exec.Command("sh", "-c", "read _; sleep 1000 >/dev/null & echo $!")
			cmd.Env = []string{"PATH=" + os.Getenv("PATH"), Variable + "=" + life + ".1"}
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
			child := 0
			processes = func() []int {
				pids := system()
				if child != 0 {
					return pids
				}
				child = handOver(t, cmd, in, out, c.reaped)
				if !c.listed {
					pids = slices.DeleteFunc(pids, func(pid int) bool { return pid == cmd.Process.Pid })
				}
				return pids
			}
			sweep(below(life), patience)
			defer killAll([]int{child})
			gone(t, "after the sweep", child)
			if !c.reaped {
				_ = cmd.Wait() // it has ended
			}
		})
	}
}

// handOver has a process start its child and end, and returns the child.
func handOver(t *testing.T, cmd *exec.Cmd, in io.WriteCloser, out io.Reader, reaped bool) (child int) {
	t.Helper()
	if err := in.Close(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	if child, err = strconv.Atoi(strings.TrimSpace(line)); err != nil {
		t.Fatal(err)
	}
	if reaped {
		_ = cmd.Wait() // its exit code is that of read
	} else {
		err = unix.Waitid(unix.P_PID, cmd.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	return child
}

// A sweep ends with the second listing where both have the same, though one process of it has ended and nobody waits for it.
func TestASweepDoesNotWaitForOneThatNobodyWaitsFor(t *testing.T) {
	system := processes
	t.Cleanup(func() { processes = system })
	cmd := exec.Command("true")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Wait() }() // it has ended
	if err := unix.Waitid(unix.P_PID, cmd.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil); err != nil {
		t.Fatal(err)
	}
	listings := 0
	processes = func() []int { listings++; return []int{os.Getppid(), cmd.Process.Pid} }
	if n := sweep(below("nobody"), patience); n != 0 || listings != 2 {
		t.Errorf("it has killed %d, and looked %d times", n, listings)
	}
}
