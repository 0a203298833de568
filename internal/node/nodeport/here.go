package nodeport

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/netip"
	"time"

	"golang.org/x/sys/unix"

	"mobula/internal/errs"
	"mobula/internal/machine"
)

// Between two nodes of one machine that are connected over its loopback, objects go in clear once both have proved who they are: no other user of the
// machine reads or changes what goes there, and to encrypt it costs more than all else (decision 0035). The dialer offers that by a protocol of its own, where both
// ends of its connection are addresses of the loopback. That is not enough: behind such an address may be a tunnel to another machine. So each end says,
// under TLS, which two sockets of which network namespace of which boot it has. Where these are the same two, the kernel connects them, and TLS ends.
//
//	dialer    -> acceptor   its place, under TLS
//	acceptor  -> dialer     its place, under TLS
//	dialer    -> acceptor   bare, in clear, if the places are one
//
// Neither writes before it has read what the other one has written: so no byte in clear is taken for one of TLS. Where the places are two, TLS goes on.

// hereALPN is the protocol of objects between nodes that may be on one machine.
const hereALPN = "mobula-obj-here/1"

// bare is the first byte in clear.
const bare = 0xb1

// place is the two ends of a connection as one of them sees it.
type place struct {
	boot      [36]byte // of the machine
	namespace uint64   // of the network
	own, peer netip.AddrPort
}

// placeSize is what a place has when it is written.
const placeSize = 36 + 8 + 2*(16+2)

// placeOf gives the place of a connection. It is not ok for one that is not on the loopback, and where the kernel does not name its network namespaces.
func placeOf(tcp *net.TCPConn) (p place, ok bool) {
	own, peer := addrPort(tcp.LocalAddr()), addrPort(tcp.RemoteAddr())
	boot := machine.Boot()
	if !own.Addr().IsLoopback() || !peer.Addr().IsLoopback() || len(boot) != len(p.boot) {
		return p, false
	}
	copy(p.boot[:], boot)
	p.own, p.peer = own, peer
	raw, err := tcp.SyscallConn()
	if err != nil {
		return p, false
	}
	var failed error
	err = raw.Control(func(fd uintptr) {
		p.namespace, failed = unix.GetsockoptUint64(int(fd), unix.SOL_SOCKET, unix.SO_NETNS_COOKIE)
	})
	return p, err == nil && failed == nil
}

func addrPort(a net.Addr) netip.AddrPort {
	t, ok := a.(*net.TCPAddr)
	if !ok {
		return netip.AddrPort{}
	}
	ap := t.AddrPort()
	return netip.AddrPortFrom(ap.Addr().Unmap().WithZone(""), ap.Port())
}

// meets tells whether a place is the other end's of this one.
func (p place) meets(q place) bool {
	return p.boot == q.boot && p.namespace == q.namespace && p.own == q.peer && p.peer == q.own
}

func (p place) encode() []byte {
	b := binary.BigEndian.AppendUint64(append(make([]byte, 0, placeSize), p.boot[:]...), p.namespace)
	for _, end := range []netip.AddrPort{p.own, p.peer} {
		a := end.Addr().As16()
		b = binary.BigEndian.AppendUint16(append(b, a[:]...), end.Port())
	}
	return b
}

// decodePlace reads placeSize bytes.
func decodePlace(b []byte) (p place) {
	copy(p.boot[:], b)
	b = b[len(p.boot):]
	p.namespace = binary.BigEndian.Uint64(b)
	b = b[8:]
	for _, end := range []*netip.AddrPort{&p.own, &p.peer} {
		*end = netip.AddrPortFrom(netip.AddrFrom16([16]byte(b)).Unmap(), binary.BigEndian.Uint16(b[16:]))
		b = b[18:]
	}
	return p
}

// mayBeHere tells whether a connection that is about to be secured may be between two nodes of this machine.
func mayBeHere(tcp net.Conn) bool {
	t, ok := tcp.(*net.TCPConn)
	if !ok {
		return false
	}
	_, ok = placeOf(t)
	return ok
}

// settle agrees with the other end of a connection of hereALPN on whether it goes on in clear, and gives what it goes on with: the TCP connection below TLS, or the
// connection as it is. It ends with ctx.
func settle(ctx context.Context, secured net.Conn, below net.Conn, dialed bool) (net.Conn, error) {
	unwatch := context.AfterFunc(ctx, func() { _ = below.SetDeadline(time.Unix(1, 0)) })
	on, err := exchange(secured, below, dialed)
	if !unwatch() && err == nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("objects: agree with %v on where it is: %w", below.RemoteAddr(), err)
	}
	return on, nil
}

func exchange(secured, below net.Conn, dialed bool) (net.Conn, error) {
	var mine place
	if tcp, ok := below.(*net.TCPConn); ok {
		mine, _ = placeOf(tcp) // else it is a place that meets none
	}
	if dialed {
		if _, err := secured.Write(mine.encode()); err != nil {
			return nil, err
		}
	}
	b := make([]byte, placeSize)
	if _, err := io.ReadFull(secured, b); err != nil {
		return nil, err
	}
	if !dialed {
		if _, err := secured.Write(mine.encode()); err != nil {
			return nil, err
		}
	}
	if !mine.own.IsValid() || !mine.meets(decodePlace(b)) {
		return secured, nil
	}
	if dialed {
		_, err := below.Write([]byte{bare})
		return below, err
	}
	if _, err := io.ReadFull(below, b[:1]); err != nil {
		return nil, err
	}
	if b[0] != bare {
		return nil, errs.New(errs.CodeProtocol, "the first byte in clear is %#x, not %#x", b[0], bare)
	}
	return below, nil
}

// inClear is a connection that goes on in clear, with what was proved before.
type inClear struct {
	net.Conn
	state tls.ConnectionState
}

// ConnectionState has the certificates of the other end.
func (c inClear) ConnectionState() tls.ConnectionState { return c.state }
