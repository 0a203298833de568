package memnet

import (
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/memberlist"
)

// Transport is one end of a Network. It implements memberlist.NodeAwareTransport.
type Transport struct {
	network *Network
	address string
	ip      net.IP
	port    int
	packets chan *memberlist.Packet
	streams chan net.Conn
	closed  chan struct{}
	once    sync.Once
}

// What an end holds that memberlist has not taken: as many packets as a socket's buffer, as many streams as a listener's queue.
const (
	maxPackets = 2048
	maxStreams = 128
)

var _ memberlist.NodeAwareTransport = (*Transport)(nil)

func newTransport(n *Network, address string, ip net.IP, port int) *Transport {
	return &Transport{
		network: n, address: address, ip: ip, port: port,
		packets: make(chan *memberlist.Packet, maxPackets), streams: make(chan net.Conn, maxStreams), closed: make(chan struct{}),
	}
}

// at is a net.Addr.
type at string

// Network names the kind of address.
func (at) Network() string { return "memnet" }

// String is the address.
func (a at) String() string { return string(a) }

// FinalAdvertiseAddr implements memberlist.Transport.
func (t *Transport) FinalAdvertiseAddr(string, int) (net.IP, int, error) { return t.ip, t.port, nil }

// WriteTo implements memberlist.Transport.
func (t *Transport) WriteTo(b []byte, addr string) (time.Time, error) {
	return t.WriteToAddress(b, memberlist.Address{Addr: addr})
}

// WriteToAddress implements memberlist.NodeAwareTransport.
func (t *Transport) WriteToAddress(b []byte, a memberlist.Address) (time.Time, error) {
	now := time.Now()
	delay, lost := t.network.way(t.address, a.Addr, true)
	if lost {
		return now, nil
	}
	b = slices.Clone(b)
	arrive := func() {
		t.network.unless(t.address, a.Addr, func() {
			if to := t.network.end(a.Addr); to != nil {
				to.receive(&memberlist.Packet{Buf: b, From: at(t.address), Timestamp: time.Now()})
			}
		})
	}
	if delay == 0 {
		arrive()
	} else {
		time.AfterFunc(delay, arrive)
	}
	return now, nil
}

// receive takes a packet, or loses it.
func (t *Transport) receive(p *memberlist.Packet) {
	select {
	case t.packets <- p:
	default:
	}
}

// Inject has a packet arrive here that no other end has sent.
func (t *Transport) Inject(b []byte, from string) {
	t.receive(&memberlist.Packet{Buf: slices.Clone(b), From: at(from), Timestamp: time.Now()})
}

// DialTimeout implements memberlist.Transport.
func (t *Transport) DialTimeout(addr string, timeout time.Duration) (net.Conn, error) {
	return t.DialAddressTimeout(memberlist.Address{Addr: addr}, timeout)
}

// DialAddressTimeout implements memberlist.NodeAwareTransport.
func (t *Transport) DialAddressTimeout(a memberlist.Address, timeout time.Duration) (net.Conn, error) {
	delay, cut := t.network.way(t.address, a.Addr, false)
	if cut || delay > timeout {
		if t.wait(timeout) {
			return nil, fmt.Errorf("%w at %s in %v", ErrUnreachable, a.Addr, timeout)
		}
		return nil, net.ErrClosed
	}
	if !t.wait(delay) {
		return nil, net.ErrClosed
	}
	to := t.network.end(a.Addr)
	if to == nil {
		return nil, fmt.Errorf("%w at %s", ErrRefused, a.Addr)
	}
	here, there := net.Pipe()
	t.network.unless(t.address, a.Addr, func() { to.accept(there) })
	return here, nil
}

// accept takes a stream, or closes it.
func (t *Transport) accept(c net.Conn) {
	select {
	case <-t.closed:
	default:
		select {
		case t.streams <- c:
			return
		default:
		}
	}
	_ = c.Close()
}

// wait waits so long, and tells whether this end is still open.
func (t *Transport) wait(d time.Duration) bool {
	if d <= 0 {
		return true
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-t.closed:
		return false
	}
}

// PacketCh implements memberlist.Transport.
func (t *Transport) PacketCh() <-chan *memberlist.Packet { return t.packets }

// StreamCh implements memberlist.Transport.
func (t *Transport) StreamCh() <-chan net.Conn { return t.streams }

// Shutdown implements memberlist.Transport. Streams that nobody took are closed.
func (t *Transport) Shutdown() error {
	t.once.Do(func() {
		t.network.close(t)
		close(t.closed)
		for {
			select {
			case c := <-t.streams:
				_ = c.Close()
			default:
				return
			}
		}
	})
	return nil
}
