package guard

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"mobula/internal/pidfd"
)

// pause is how long a sweep waits for its kills before it looks for more processes.
const pause = 10 * time.Millisecond

// Sweep kills the processes that workers of a node's earlier lives have left. Call it before the first worker of this
// life.
func Sweep(node string) (killed int) {
	return sweep(below(node), time.Second)
}

// sweep kills every process with a wanted mark, and what these start meanwhile, until there is none, at most for long.
func sweep(wanted func(mark string) bool, long time.Duration) (killed int) {
	for end := time.Now().Add(long); ; time.Sleep(pause) {
		n, again := sweepOnce(wanted)
		killed += n
		if !again || time.Now().After(end) {
			return killed
		}
	}
}

// sweepOnce tells to look again where it has killed a process, which may have started others, or could not see what a process is.
func sweepOnce(wanted func(mark string) bool) (killed int, again bool) {
	for _, pid := range processes() {
		is, unseen := marked(pid, wanted)
		again = again || unseen
		if !is {
			continue
		}
		p, err := pidfd.Open(pid)
		if err != nil {
			continue // it has ended
		}
		is, unseen = marked(pid, wanted) // again: now it is still this process
		again = again || unseen
		if is && p.Kill(unix.SIGKILL) == nil {
			killed++
			again = true
		}
		p.Close()
	}
	return killed, again
}

// marked tells whether a live process has a wanted mark. Of one that is just in an exec that cannot be seen; the environment of a dead one is empty.
func marked(pid int, wanted func(mark string) bool) (is, unseen bool) {
	b, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "environ"))
	if err != nil || pid == os.Getpid() {
		return false, false
	}
	return slices.ContainsFunc(marksIn(string(b)), wanted), len(b) == 0 && pidfd.Execs(pid)
}

// processes lists all visible processes.
func processes() []int {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer func() { _ = dir.Close() }() // only read
	names, _ := dir.Readdirnames(-1)   // an error gives a partial list
	var pids []int
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// killGroups kills process groups that existed before the moment: a group with a member from before is still the same group, since its number
// is not reused while it has members.
func killGroups(groups map[int]bool, before uint64) {
	if len(groups) == 0 {
		return
	}
	ours := make(map[int]bool)
	for _, pid := range processes() {
		if start, gone := pidfd.Start(pid); !gone && start > 0 && start <= before {
			if g, err := unix.Getpgid(pid); err == nil && groups[g] {
				ours[g] = true
			}
		}
	}
	for g := range ours {
		_ = unix.Kill(-g, unix.SIGKILL) // it may be gone already
	}
}

// now is the present time in the unit of processes' start times.
func now() uint64 {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_BOOTTIME, &t) != nil {
		return 0
	}
	const perSecond = 100 // USER_HZ
	return uint64(t.Nano() / (int64(time.Second) / perSecond))
}
