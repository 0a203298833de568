package loopback

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// Host is an address of the loopback interface that one node has.
type Host struct {
	addr netip.Addr

	mu     sync.Mutex
	refuse []netip.Addr // guarded by mu: hosts of which it takes nothing
}

// New makes a Host of an address of 127.0.0.0/8 that nobody else has.
func New(addr netip.Addr) *Host { return &Host{addr: addr} }

// Addr is the host's address.
func (h *Host) Addr() netip.Addr { return h.addr }

// Dialer connects from this host: by that other hosts know whose connection it is.
func (h *Host) Dialer() net.Dialer {
	return net.Dialer{LocalAddr: &net.TCPAddr{IP: h.addr.AsSlice()}, Control: func(_, _ string, raw syscall.RawConn) error {
		h.mu.Lock()
		defer h.mu.Unlock()
		if len(h.refuse) == 0 {
			return nil
		}
		var failed error
		err := raw.Control(func(fd uintptr) { failed = filter(int(fd), h.refuse) })
		return errors.Join(err, failed)
	}}
}

// Refuse has each socket of the host take nothing from some hosts, and from all others what comes. To cut two hosts off, each refuses the other.
func (h *Host) Refuse(from []netip.Addr) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.refuse = slices.Clone(from)
	const own = "/proc/self/fd"
	all, err := os.ReadDir(own)
	if err != nil {
		return fmt.Errorf("sockets of %v: %w", h.addr, err)
	}
	for _, e := range all {
		fd, err := strconv.Atoi(e.Name())
		if err != nil {
			return fmt.Errorf("sockets of %v: %w", h.addr, err)
		}
		if err := h.filterLocked(fd); err != nil {
			return fmt.Errorf("sockets of %v: %w", h.addr, err)
		}
	}
	return nil
}

// filterLocked sets the filter of a socket, if the descriptor is one of this host. The descriptor is another goroutine's, which may close it: a copy stays the same
// file. One that listens needs no filter, since the answer to who connects is dropped by his, and cannot have one where it speaks MPTCP, as Go has it. h.mu is held.
func (h *Host) filterLocked(fd int) error {
	fd, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil // it is closed
	}
	defer func() { _ = unix.Close(fd) }() // it is a copy
	at, err := unix.Getsockname(fd)
	if v4, is := at.(*unix.SockaddrInet4); err != nil || !is || netip.AddrFrom4(v4.Addr) != h.addr {
		return nil
	}
	if listens, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ACCEPTCONN); err != nil || listens != 0 {
		return os.NewSyscallError("getsockopt", err)
	}
	return filter(fd, h.refuse)
}

// filter has the kernel drop the packets of some hosts that come to a socket.
func filter(fd int, from []netip.Addr) error {
	if len(from) == 0 {
		err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_DETACH_FILTER, 0)
		if errors.Is(err, unix.ENOENT) { // it had none
			err = nil
		}
		return os.NewSyscallError("setsockopt", err)
	}
	const (
		header   = 0xfff00000 // SKF_NET_OFF: offsets from there are of the packet's IP header
		source   = 12         // of it
		all      = 0xffffffff
		loadWord = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS
		ifEqual  = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K
		take     = unix.BPF_RET | unix.BPF_K // as many bytes
	)
	code := []unix.SockFilter{{Code: loadWord, K: header + source}}
	for _, a := range from {
		b := a.As4()
		code = append(code, unix.SockFilter{Code: ifEqual, Jf: 1, K: uint32(b[0])<<24 | uint32(b[1])<<16 | uint32(b[2])<<8 | uint32(b[3])}, unix.SockFilter{Code: take})
	}
	code = append(code, unix.SockFilter{Code: take, K: all})
	prog := unix.SockFprog{Len: uint16(len(code)), Filter: &code[0]}
	return os.NewSyscallError("setsockopt", unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &prog))
}
