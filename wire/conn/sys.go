package conn

import (
	"net"
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"mobula/internal/errs"
	"mobula/internal/pidfd"
	"mobula/wire"
)

// The two system calls of a connection. They are called directly and not through
// net.UnixConn's methods because those allocate an address a call, and cannot write
// several buffers together with a descriptor. One that does not wait is not announced to the
// runtime: in a process that was idle the announcement wakes the runtime's monitor, 20 us
// before the message goes, and the monitor then looks around every 20 us.

const maxIovecs = 64 // buffers of one call

// sender holds the arguments of sendmsg, so that a call allocates nothing.
type sender struct {
	hdr  unix.Msghdr
	iov  [maxIovecs]unix.Iovec
	ctrl []byte
}

// send writes the beginning of parts and returns how many bytes went. A part with a
// file starts a call of its own.
func (s *sender) send(fd uintptr, parts []wire.Part) (int, error) {
	s.hdr = unix.Msghdr{Iov: &s.iov[0]}
	if f := parts[0].File; f != nil {
		s.ctrl = unix.UnixRights(int(f.Fd()))
		s.hdr.Control = &s.ctrl[0]
		s.hdr.SetControllen(len(s.ctrl))
	}
	n := 0
	for i := range parts {
		if n == maxIovecs || i > 0 && parts[i].File != nil {
			break
		}
		s.iov[n].Base = unsafe.SliceData(parts[i].Data)
		s.iov[n].SetLen(len(parts[i].Data))
		n++
	}
	s.hdr.SetIovlen(n)
	sent, _, errno := syscall.RawSyscall(unix.SYS_SENDMSG, fd, uintptr(unsafe.Pointer(&s.hdr)), unix.MSG_NOSIGNAL|unix.MSG_DONTWAIT)
	clear(s.iov[:n])
	if errno != 0 {
		return 0, errno
	}
	return int(sent), nil
}

// recver holds the arguments of recvmsg.
type recver struct {
	hdr  unix.Msghdr
	iov  unix.Iovec
	ctrl []byte // nil: descriptors are refused
	poll unix.PollFd
	most unix.Timespec
}

// await waits for bytes, up to hotWait. A recvmsg that waited would be woken each time that the other side takes a message, too: there is room then, and
// the kernel has one list of those who wait for either. A poll is asked what it waits for.
func (r *recver) await(fd uintptr) error {
	r.poll, r.most = unix.PollFd{Fd: int32(fd), Events: unix.POLLIN}, unix.NsecToTimespec(hotWait.Nanoseconds())
	n, _, errno := syscall.Syscall6(unix.SYS_PPOLL, uintptr(unsafe.Pointer(&r.poll)), 1, uintptr(unsafe.Pointer(&r.most)), 0, 0, 0)
	switch {
	case errno != 0:
		return errno
	case n == 0:
		return unix.EAGAIN
	}
	return nil
}

// recv reads into b and returns the files that came with the bytes. More descriptors than
// fit, or any where they are refused, are an error, and none of them stays open. Unless it
// may wait it fails with EAGAIN where there is nothing.
func (r *recver) recv(fd uintptr, b []byte, wait bool) (int, []*os.File, error) {
	if wait {
		if err := r.await(fd); err != nil {
			return 0, nil, err
		}
	}
	r.iov.Base = unsafe.SliceData(b)
	r.iov.SetLen(len(b))
	r.hdr = unix.Msghdr{Iov: &r.iov}
	r.hdr.SetIovlen(1)
	if r.ctrl != nil {
		r.hdr.Control = &r.ctrl[0]
		r.hdr.SetControllen(len(r.ctrl))
	}
	n, _, errno := syscall.RawSyscall(unix.SYS_RECVMSG, fd, uintptr(unsafe.Pointer(&r.hdr)), unix.MSG_CMSG_CLOEXEC|unix.MSG_DONTWAIT)
	r.iov.Base = nil
	if errno != 0 {
		return 0, nil, errno
	}
	if r.hdr.Flags&unix.MSG_CTRUNC == 0 && r.hdr.Controllen == 0 {
		return int(n), nil, nil
	}
	files, err := r.files()
	return int(n), files, err
}

func (r *recver) files() (files []*os.File, err error) {
	if r.ctrl != nil {
		files, err = parseFiles(r.ctrl[:r.hdr.Controllen])
	}
	switch {
	case err != nil:
	case r.ctrl == nil:
		err = errs.New(errs.CodeProtocol, "a file descriptor where none is accepted")
	case r.hdr.Flags&unix.MSG_CTRUNC != 0:
		err = errs.New(errs.CodeProtocol, "file descriptors were lost on the way: more than %d with one frame, or this process has no free descriptor (see ulimit -n)", wire.MaxFiles)
	}
	if err != nil {
		closeFiles(files)
		return nil, err
	}
	return files, nil
}

func parseFiles(ctrl []byte) (files []*os.File, err error) {
	msgs, err := unix.ParseSocketControlMessage(ctrl)
	if err != nil {
		return nil, errs.New(errs.CodeProtocol, "malformed control message: %v", err)
	}
	for i := range msgs {
		if msgs[i].Header.Level != unix.SOL_SOCKET || msgs[i].Header.Type != unix.SCM_RIGHTS {
			continue
		}
		fds, err := unix.ParseUnixRights(&msgs[i])
		if err != nil {
			return files, errs.New(errs.CodeProtocol, "malformed descriptor list: %v", err)
		}
		for _, fd := range fds {
			files = append(files, os.NewFile(uintptr(fd), "mobula-passed"))
		}
	}
	return files, nil
}

func closeFiles(files []*os.File) {
	for _, f := range files {
		_ = f.Close() // only ever held, nothing was written through it
	}
}

// dup copies f's descriptor, so that its owner may close it before it is sent.
func dup(f *os.File) (*os.File, error) {
	rc, err := f.SyscallConn()
	if err != nil {
		return nil, err
	}
	fd := -1
	var dupErr error
	if err := rc.Control(func(old uintptr) { fd, dupErr = unix.FcntlInt(old, unix.F_DUPFD_CLOEXEC, 0) }); err != nil {
		return nil, err
	}
	if dupErr != nil {
		return nil, os.NewSyscallError("dup", dupErr)
	}
	return os.NewFile(uintptr(fd), f.Name()), nil
}

// Peer is the process at the other end of a connection, as the kernel tells.
type Peer struct {
	PID      int32
	UID, GID uint32
}

// lives tells whether the process runs, or is stopped: what it has not read it may still read.
// Its socket alone does not say so, a child of a process that was killed may hold that.
func (p Peer) lives() bool {
	if p.PID <= 0 { // of another PID namespace
		return false
	}
	return !pidfd.Gone(int(p.PID))
}

func peerOf(uc *net.UnixConn) (Peer, error) {
	rc, err := uc.SyscallConn()
	if err != nil {
		return Peer{}, err
	}
	var cred *unix.Ucred
	var credErr error
	if err := rc.Control(func(fd uintptr) { cred, credErr = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) }); err != nil {
		return Peer{}, err
	}
	if credErr != nil {
		return Peer{}, os.NewSyscallError("getsockopt SO_PEERCRED", credErr)
	}
	return Peer{PID: cred.Pid, UID: cred.Uid, GID: cred.Gid}, nil
}
