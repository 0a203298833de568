package guard

import (
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// envGuard tells a process that it is the guard of a node's life. The pipe is its standard input.
const envGuard = "MOBULA_GUARD_OF"

// patience is how long the guard goes on killing the processes of a worker, or of the node.
const patience = 10 * time.Second

// A guard begins before any code of its program runs.
func init() {
	if life := os.Getenv(envGuard); life != "" {
		run(life)
		unix.Exit(0) // this process must not run the program
	}
}

// run guards until the node and all its processes are gone.
func run(life string) {
	runtime.GOMAXPROCS(1)
	closeInherited()
	groups := make(map[string]int)
	var in [64 << 10]byte
	part := ""
	for {
		n, err := unix.Read(0, in[:])
		if err == unix.EINTR {
			continue
		}
		if err != nil || n <= 0 {
			break
		}
		lines := strings.Split(part+string(in[:n]), "\n")
		part = lines[len(lines)-1]
		ended := make(map[string]bool)
		for _, line := range lines[:len(lines)-1] {
			worker, group, begins := strings.Cut(line, " ")
			if !begins {
				delete(groups, worker)
				ended[life+"."+worker] = true
			} else if g, err := strconv.Atoi(group); err == nil && g > 1 {
				groups[worker] = g
			}
		}
		if len(ended) > 0 {
			sweep(func(m string) bool { return ended[m] }, patience)
		}
	}
	then, left := now(), make(map[int]bool)
	for _, g := range groups {
		left[g] = true
	}
	killGroups(left, then)
	sweep(below(life), patience)
}

// closeInherited closes descriptors that were inherited from the node: somebody may wait for their end. Descriptors that this process has opened
// itself, which its runtime may need, are marked close-on-exec and stay.
func closeInherited() {
	all, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return
	}
	for _, e := range all {
		fd, err := strconv.Atoi(e.Name())
		if err != nil || fd <= 2 {
			continue
		}
		if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err == nil && flags&unix.FD_CLOEXEC == 0 {
			_ = unix.Close(fd) // it was never used
		}
	}
}
