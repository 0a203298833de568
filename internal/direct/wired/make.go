package wired

import (
	"os"

	"golang.org/x/sys/unix"

	"mobula/internal/errs"
)

// End is what a process needs to open its end of a channel. It may be passed to another process: its files are closed when it is opened, or by Close.
type End struct {
	Socket *os.File
	Page   *os.File
}

// Make makes a channel to an actor with so many concurrency groups: an end for the process that calls, and one for the actor's.
func Make(groups int) (caller, host End, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return End{}, End{}, errs.New(errs.CodeDisconnected, "socketpair: %v", err)
	}
	caller.Socket, host.Socket = os.NewFile(uintptr(fds[0]), "channel"), os.NewFile(uintptr(fds[1]), "channel")
	if host.Page, err = makePage(groups); err == nil {
		caller.Page, err = dup(host.Page)
	}
	if err != nil {
		caller.Close()
		host.Close()
		return End{}, End{}, err
	}
	return caller, host, nil
}

func dup(f *os.File) (*os.File, error) {
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, errs.New(errs.CodeDisconnected, "dup: %v", err)
	}
	return os.NewFile(uintptr(fd), f.Name()), nil
}

// Close closes an end that is not opened.
func (e End) Close() {
	for _, f := range []*os.File{e.Socket, e.Page} {
		if f != nil {
			_ = f.Close() // nobody uses it
		}
	}
}
