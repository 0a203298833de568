package wired

import (
	"os"

	"golang.org/x/sys/unix"

	"mobula/internal/errs"
)

// Make makes a channel: a socket for the process that calls, and one for the actor's. Each may be passed to another process, and is closed when it is opened.
func Make() (caller, host *os.File, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, errs.New(errs.CodeDisconnected, "socketpair: %v", err)
	}
	return os.NewFile(uintptr(fds[0]), "channel"), os.NewFile(uintptr(fds[1]), "channel"), nil
}
