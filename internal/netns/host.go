package netns

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"runtime"

	"golang.org/x/sys/unix"
)

// cable is the name of a host's interface.
const cable = "eth0"

// Host is one namespace with an address.
type Host struct {
	Addr netip.Addr

	namespace string
	port      string // of the bridge, the other end of its cable
	hub       string // namespace of the bridge
}

func (h *Host) path() string { return folder + h.namespace }

// inode is the namespace's number, by which processes in it are known.
func (h *Host) inode() (uint64, error) {
	var st unix.Stat_t
	if err := unix.Stat(h.path(), &st); err != nil {
		return 0, fmt.Errorf("netns: %s: %w", h.path(), err)
	}
	return st.Ino, nil
}

// Start starts a command in the host.
func (h *Host) Start(cmd *exec.Cmd) error { return h.Do(cmd.Start) }

// Do calls f on a thread that is in the host. Sockets that f opens, and processes that it starts, are in the host, wherever they are used later.
func (h *Host) Do(f func() error) (err error) {
	there, err := os.Open(h.path())
	if err != nil {
		return fmt.Errorf("netns: %w", err)
	}
	defer func() { _ = there.Close() }() // only ever entered
	runtime.LockOSThread()
	here, err := os.Open("/proc/thread-self/ns/net")
	if err != nil {
		runtime.UnlockOSThread()
		return fmt.Errorf("netns: %w", err)
	}
	defer func() { _ = here.Close() }() // likewise
	if err := unix.Setns(int(there.Fd()), unix.CLONE_NEWNET); err != nil {
		runtime.UnlockOSThread()
		return fmt.Errorf("netns: enter %s: %w", h.namespace, err)
	}
	defer func() {
		if back := unix.Setns(int(here.Fd()), unix.CLONE_NEWNET); back != nil {
			err = errors.Join(err, fmt.Errorf("netns: leave %s: %w", h.namespace, back))
			return // with the thread locked: it serves nobody else, and ends with this goroutine
		}
		runtime.UnlockOSThread()
	}()
	return f()
}
