package wire

import (
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// sock is a connected socket with a way to wait of its own. The runtime's poller watches
// what it is given for room to write too, and a Unix socket has room again each time the
// other side takes a message: this process would be woken for each one it sent. So the
// poller is given, in place of the socket, an epoll set in which the socket is watched for
// bytes alone. Who has to wait for room, which is rare, waits in a system call.
type sock struct {
	fd  int
	set *os.File // the epoll set; its locks guard fd against being closed in use
	raw syscall.RawConn

	epoll int // the set's descriptor

	closing sync.Once
	closed  error
}

const readable = unix.EPOLLIN | unix.EPOLLRDHUP

// newSock takes over uc; not on an error.
func newSock(uc *net.UnixConn) (*sock, error) {
	rc, err := uc.SyscallConn()
	if err != nil {
		return nil, err
	}
	s := &sock{fd: -1}
	var sysErr error
	if err := rc.Control(func(old uintptr) { s.fd, sysErr = unix.FcntlInt(old, unix.F_DUPFD_CLOEXEC, 0) }); err != nil {
		return nil, err
	}
	if sysErr != nil {
		return nil, os.NewSyscallError("dup", sysErr)
	}
	if err := s.open(); err != nil {
		_ = unix.Close(s.fd) // err says more
		return nil, err
	}
	_ = uc.Close() // the copy goes on
	return s, nil
}

// open makes the epoll set.
func (s *sock) open() error {
	if err := limitWaits(s.fd); err != nil {
		return os.NewSyscallError("setsockopt", err)
	}
	set, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return os.NewSyscallError("epoll_create", err)
	}
	err = unix.EpollCtl(set, unix.EPOLL_CTL_ADD, s.fd, &unix.EpollEvent{Events: readable})
	if err == nil {
		err = unix.SetNonblock(set, true) // else os would not use the poller
	}
	if err != nil {
		_ = unix.Close(set) // err says more
		return os.NewSyscallError("epoll_ctl", err)
	}
	s.epoll = set
	s.set = os.NewFile(uintptr(set), "socket")
	s.raw, err = s.set.SyscallConn()
	return err
}

// watch has the poller told, or not, when there is something to read.
func (s *sock) watch(on bool) error {
	var e unix.EpollEvent
	if on {
		e.Events = readable
	}
	return os.NewSyscallError("epoll_ctl", unix.EpollCtl(s.epoll, unix.EPOLL_CTL_MOD, s.fd, &e))
}

// Close ends every wait and closes the socket when nobody uses it any more.
func (s *sock) Close() error {
	s.closing.Do(func() {
		_ = unix.Shutdown(s.fd, unix.SHUT_RDWR) // the other side may have closed before
		err := s.set.Close()                    // waits for those inside
		if s.closed = os.NewSyscallError("close", unix.Close(s.fd)); s.closed == nil {
			s.closed = err
		}
	})
	return s.closed
}

// endReading has reads find the end behind what has come, whoever holds the other side open.
func (s *sock) endReading() {
	_ = s.raw.Control(func(uintptr) { _ = unix.Shutdown(s.fd, unix.SHUT_RD) }) // the other side may have closed before
}

// write calls f, which does not wait, with the socket's descriptor.
func (s *sock) write(f func(fd uintptr) bool) error { return s.raw.Write(f) }

// writeAll writes b, waiting for room for at most d.
func (s *sock) writeAll(b []byte, d time.Duration) (err error) {
	until := time.Now().Add(d)
	inside := s.raw.Write(func(uintptr) bool {
		for len(b) > 0 {
			var n int
			switch n, err = unix.SendmsgN(s.fd, b, nil, nil, unix.MSG_NOSIGNAL|unix.MSG_DONTWAIT); err {
			case nil:
				b = b[n:]
			case unix.EAGAIN:
				left := time.Until(until)
				if left <= 0 {
					err = os.ErrDeadlineExceeded
					return true
				}
				s.awaitRoom(left)
			case unix.EINTR:
			default:
				return true
			}
		}
		return true
	})
	if inside != nil {
		return inside
	}
	return err
}

// awaitRoom waits until there may be room to write, or the socket is shut, for at most d.
func (s *sock) awaitRoom(d time.Duration) {
	p := unix.PollFd{Fd: int32(s.fd), Events: unix.POLLOUT}
	ts := unix.NsecToTimespec(d.Nanoseconds())
	_, _ = unix.Ppoll([]unix.PollFd{p}, &ts, nil) // the write after it sees how it is
}
