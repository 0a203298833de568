package guard

import (
	"errors"
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

// sweep kills every process with a wanted mark, and what these start meanwhile, until they are gone, at most for long. It looks twice at least: where a
// process forks and ends while /proc is read, the listing may have neither it nor its child.
func sweep(wanted func(mark string) bool, long time.Duration) (killed int) {
	end := time.Now().Add(long)
	known := map[int]found{}
	for first := true; ; first = false {
		n, seen, again := look(known, wanted)
		killed += n
		if !again && !first || time.Now().After(end) {
			return killed
		}
		if n > 0 || !first {
			time.Sleep(pause)
		}
		known = seen
	}
}

// look kills the processes with a wanted mark that /proc lists, and tells what it has seen; known is what the look before has. It tells to look again where
// it has killed one, which may have started others, until that is gone; where a new one shows nothing, which may have, too, and have ended; and where one
// is just in an exec.
func look(known map[int]found, wanted func(mark string) bool) (killed int, seen map[int]found, again bool) {
	seen = make(map[int]found)
	for _, pid := range processes() {
		f := find(pid, wanted)
		switch f {
		case killedNow:
			killed++
			again = true
		case showsNothing:
			was, old := known[pid]
			if was == killedNow && !pidfd.Gone(pid) {
				f, old = killedNow, false
			}
			again = again || !old
		case execs:
			again = true
			continue
		case other:
		}
		seen[pid] = f
	}
	return killed, seen, again
}

// found is what a sweep finds a process to be.
type found int

const (
	other        found = iota // without a wanted mark, or not to be seen or killed by this process
	execs                     // just in an exec: it shows no environment now
	showsNothing              // without an environment: it has ended or is about to, or never had one
	killedNow                 // with a wanted mark
)

// find kills a process if it has a wanted mark.
func find(pid int, wanted func(mark string) bool) found {
	is, f := marked(pid, wanted)
	if !is {
		return f
	}
	p, err := pidfd.Open(pid)
	if err != nil {
		return showsNothing
	}
	defer p.Close()
	if is, f = marked(pid, wanted); is && p.Kill(unix.SIGKILL) == nil { // again: now it is still this process
		return killedNow
	}
	return f
}

// marked tells whether a process has a wanted mark, and if not, what it is.
func marked(pid int, wanted func(mark string) bool) (bool, found) {
	if pid == os.Getpid() {
		return false, other
	}
	b, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "environ"))
	switch {
	case errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ESRCH):
		return false, showsNothing
	case err != nil: // of another user
		return false, other
	case len(b) > 0:
		return slices.ContainsFunc(marksIn(string(b)), wanted), other
	case pidfd.Execs(pid):
		return false, execs
	}
	return false, showsNothing
}

// processes lists all visible processes; a test makes one fork and end meanwhile.
var processes = func() []int {
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
