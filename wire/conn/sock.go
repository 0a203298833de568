package conn

import (
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"mobula/wire"
)

// socket is a connected Unix socket with a way to wait of its own. The runtime's poller watches
// what it is given for room to write too, and a Unix socket has room again each time the
// other side takes a message: this process would be woken for each one it sent. So the
// poller is given, in place of the socket, an epoll set in which the socket is watched for
// bytes alone. Who has to wait for room, which is rare, waits in a system call.
type socket struct {
	fd  int
	set *os.File // the epoll set; its locks guard fd against being closed in use
	raw syscall.RawConn

	epoll int // the set's descriptor

	// Of who writes.
	snd    sender
	out    []wire.Part
	sent   int
	sndErr error
	sendFn func(fd uintptr) bool

	// Of who reads.
	hot    hot
	rcv    recver
	in     *wire.FrameReader
	soon   bool
	got    int
	rcvErr error
	recvFn func(fd uintptr) bool

	closing sync.Once
	closed  error
}

const readable = unix.EPOLLIN | unix.EPOLLRDHUP

// newSocket takes over uc; not on an error. hot: reads may wait in the kernel. files: descriptors are accepted from the other side.
func newSocket(uc *net.UnixConn, hot, files bool) (*socket, error) {
	rc, err := uc.SyscallConn()
	if err != nil {
		return nil, err
	}
	s := &socket{fd: -1}
	s.sendFn, s.recvFn = s.send, s.recv
	s.hot.may = hot
	if files {
		s.rcv.ctrl = make([]byte, unix.CmsgSpace(4*wire.MaxFiles))
	}
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
func (s *socket) open() error {
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
func (s *socket) watch(on bool) error {
	var e unix.EpollEvent
	if on {
		e.Events = readable
	}
	return os.NewSyscallError("epoll_ctl", unix.EpollCtl(s.epoll, unix.EPOLL_CTL_MOD, s.fd, &e))
}

// Close ends every wait and closes the socket when nobody uses it any more.
func (s *socket) Close() error {
	s.closing.Do(func() {
		_ = unix.Shutdown(s.fd, unix.SHUT_RDWR) // the other side may have closed before
		err := s.set.Close()                    // waits for those inside
		if s.closed = os.NewSyscallError("close", unix.Close(s.fd)); s.closed == nil {
			s.closed = err
		}
	})
	return s.closed
}

func (s *socket) endReading() {
	_ = s.raw.Control(func(uintptr) { _ = unix.Shutdown(s.fd, unix.SHUT_RD) }) // the other side may have closed before
}

func (s *socket) heat() *hot { return &s.hot }

func (s *socket) setReadDeadline(t time.Time) error { return s.set.SetReadDeadline(t) }

func (s *socket) write(parts []wire.Part) (int, error) {
	s.out, s.sent, s.sndErr = parts, 0, nil
	err := s.raw.Write(s.sendFn)
	s.out = nil
	if err != nil {
		return 0, err
	}
	return s.sent, s.sndErr
}

// send is called with the socket in use, and does not wait.
func (s *socket) send(uintptr) bool {
	for {
		n, err := s.snd.send(uintptr(s.fd), s.out)
		switch err {
		case nil:
			s.sent = n
		case unix.EINTR:
			continue
		case unix.EAGAIN:
		default:
			s.sndErr = os.NewSyscallError("sendmsg", err)
		}
		return true
	}
}

func (s *socket) awaitRoom(d time.Duration) {
	_ = s.raw.Write(func(uintptr) bool { // the write after it sees how it is
		p := unix.PollFd{Fd: int32(s.fd), Events: unix.POLLOUT}
		ts := unix.NsecToTimespec(d.Nanoseconds())
		_, _ = unix.Ppoll([]unix.PollFd{p}, &ts, nil)
		return true
	})
}

func (s *socket) read(r *wire.FrameReader, soon bool) (int, error) {
	s.in, s.soon, s.got, s.rcvErr = r, soon, 0, nil
	if err := s.raw.Read(s.recvFn); err != nil {
		return 0, err
	}
	return s.got, s.rcvErr
}

// recv is called by the poller, with the socket in use, whenever there may be bytes.
func (s *socket) recv(uintptr) bool {
	if s.hot.heap {
		if s.rcvErr = s.hot.cool(s); s.rcvErr != nil {
			return true
		}
	}
	if s.hot.on {
		s.hot.turn()
	}
	for {
		n, files, err := s.rcv.recv(uintptr(s.fd), s.in.Room(), s.hot.on)
		switch err {
		case nil:
			s.rcvErr = s.in.PutFiles(files)
			s.got = n
			s.in.Put(n)
			s.hot.waited(s)
			return true
		case unix.EINTR:
		case unix.EAGAIN:
			if s.hot.on {
				if s.rcvErr = s.hot.cool(s); s.rcvErr != nil {
					return true
				}
				if !s.soon {
					continue // the poller is told only of what comes from now on
				}
			}
			s.in.Shed()
			if s.soon {
				s.rcvErr = errNothing
				return true
			}
			s.hot.since = now()
			return false
		default:
			if _, ok := err.(unix.Errno); ok {
				err = os.NewSyscallError("recvmsg", err)
			}
			s.rcvErr = err
			return true
		}
	}
}
