package shell

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync"
	"syscall"
	"time"
)

// ErrCut is the end of a connection that Memory.Cut or Memory.CutAfter has made.
var ErrCut = errors.New("remote: the connection was cut")

// Memory is a network in this process: for tests, and for several nodes in one process. Nothing happens in it by chance or by a clock: bytes are there
// as soon as they are written. Faults are made by those who have it.
type Memory struct {
	mu    sync.Mutex
	nodes map[string]*memoryNode    // guarded by mu
	conns map[*memoryConn]struct{}  // guarded by mu: dialers' ends
	links map[[2]string]*linkFaults // guarded by mu: of what goes from the first address to the second
}

// linkFaults is what new connections begin with.
type linkFaults struct {
	refuse error
	stall  bool
	after  int64 // bytes to the cut, of the next connection; -1: never
}

// NewMemory makes a network without nodes.
func NewMemory() *Memory {
	return &Memory{nodes: make(map[string]*memoryNode), conns: make(map[*memoryConn]struct{}), links: make(map[[2]string]*linkFaults)}
}

// Listen puts a node at an address.
func (m *Memory) Listen(address string) (Transport, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.nodes[address] != nil {
		return nil, fmt.Errorf("remote: %s: %w", address, syscall.EADDRINUSE)
	}
	n := &memoryNode{net: m, address: address, conns: make(chan *memoryConn, 16), closed: make(chan struct{})}
	m.nodes[address] = n
	return n, nil
}

// faults gives those of one way. mu is held.
func (m *Memory) faults(from, to string) *linkFaults {
	way := [2]string{from, to}
	if m.links[way] == nil {
		m.links[way] = &linkFaults{after: -1}
	}
	return m.links[way]
}

// ways gives the streams that go from one node to another. mu is held.
func (m *Memory) ways(from, to string) (out []*stream) {
	for c := range m.conns {
		switch [2]string{from, to} {
		case [2]string{string(c.local), string(c.remote)}:
			out = append(out, c.out)
		case [2]string{string(c.remote), string(c.local)}:
			out = append(out, c.in)
		}
	}
	return out
}

// Refuse has a node's dials to another one fail from now on; nil: no more.
func (m *Memory) Refuse(from, to string, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.faults(from, to).refuse = err
}

// Cut ends the connections between two nodes, both ways. What was written and not read is lost.
func (m *Memory) Cut(a, b string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, s := range append(m.ways(a, b), m.ways(b, a)...) {
		s.cut(true)
	}
}

// CutAfter ends the next connection between two nodes, both ways, when a number of bytes went from the first to the second.
func (m *Memory) CutAfter(from, to string, bytes int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.faults(from, to).after = bytes
}

// Stall stops, or lets go on, what goes from one node to another, on the connections that there are and on later ones.
func (m *Memory) Stall(from, to string, stall bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.faults(from, to).stall = stall
	for _, s := range m.ways(from, to) {
		s.stall(stall)
	}
}

// HalfClose ends what goes from one node to another, on the connections that there are. The other way goes on.
func (m *Memory) HalfClose(from, to string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, s := range m.ways(from, to) {
		s.end()
	}
}

// connect makes a connection, and gives the dialer's end, the other one, and whose that is to be.
func (m *Memory) connect(from, to string) (dialer, other *memoryConn, node *memoryNode, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	there, back := m.faults(from, to), m.faults(to, from)
	node = m.nodes[to]
	switch {
	case there.refuse != nil:
		return nil, nil, nil, there.refuse
	case node == nil:
		return nil, nil, nil, fmt.Errorf("remote: %s: %w", to, syscall.ECONNREFUSED)
	}
	out, in := newStream(there), newStream(back)
	out.other, in.other = in, out
	there.after, back.after = -1, -1
	dialer = &memoryConn{net: m, local: memoryAddr(from), remote: memoryAddr(to), out: out, in: in}
	other = &memoryConn{net: m, local: memoryAddr(to), remote: memoryAddr(from), out: in, in: out}
	dialer.pair, other.pair = dialer, dialer
	m.conns[dialer] = struct{}{}
	return dialer, other, node, nil
}

// memoryNode is a node's transport.
type memoryNode struct {
	net     *Memory
	address string
	conns   chan *memoryConn
	closed  chan struct{}
	once    sync.Once
}

// Dial implements Transport.
func (n *memoryNode) Dial(ctx context.Context, address string) (Conn, error) {
	c, other, to, err := n.net.connect(n.address, address)
	if err != nil {
		return nil, err
	}
	select {
	case to.conns <- other:
		return c, nil
	case <-to.closed:
		err = fmt.Errorf("remote: %s: %w", address, syscall.ECONNREFUSED)
	case <-n.closed:
		err = net.ErrClosed
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	_ = c.Close()
	return nil, err
}

// Accept implements Transport.
func (n *memoryNode) Accept() (Conn, error) {
	select {
	case c := <-n.conns:
		return c, nil
	case <-n.closed:
		return nil, net.ErrClosed
	}
}

// Close implements Transport. Connections that nobody has accepted end.
func (n *memoryNode) Close() error {
	n.once.Do(func() {
		n.net.mu.Lock()
		if n.net.nodes[n.address] == n {
			delete(n.net.nodes, n.address)
		}
		n.net.mu.Unlock()
		close(n.closed)
		for {
			select {
			case c := <-n.conns:
				_ = c.Close()
				continue
			default:
			}
			return
		}
	})
	return nil
}

// memoryAddr is a node's address.
type memoryAddr string

// Network implements net.Addr.
func (memoryAddr) Network() string { return "memory" }

func (a memoryAddr) String() string { return string(a) }

// memoryConn is one end of a connection.
type memoryConn struct {
	net           *Memory
	local, remote memoryAddr
	out, in       *stream
	pair          *memoryConn // the dialer's end
}

func (c *memoryConn) Read(b []byte) (int, error)  { return c.in.read(b) }
func (c *memoryConn) Write(b []byte) (int, error) { return c.out.write(b) }

// Close implements net.Conn. The other end reads what was written before, and then the end.
func (c *memoryConn) Close() error {
	c.out.end()
	c.in.abandon()
	c.net.mu.Lock()
	defer c.net.mu.Unlock()
	delete(c.net.conns, c.pair)
	return nil
}

// ConnectionState implements Conn: there are no certificates.
func (c *memoryConn) ConnectionState() tls.ConnectionState { return tls.ConnectionState{} }

func (c *memoryConn) LocalAddr() net.Addr  { return c.local }
func (c *memoryConn) RemoteAddr() net.Addr { return c.remote }

// SetDeadline implements net.Conn.
func (c *memoryConn) SetDeadline(t time.Time) error {
	c.in.readBy(t)
	c.out.writeBy(t)
	return nil
}

// SetReadDeadline implements net.Conn.
func (c *memoryConn) SetReadDeadline(t time.Time) error {
	c.in.readBy(t)
	return nil
}

// SetWriteDeadline implements net.Conn.
func (c *memoryConn) SetWriteDeadline(t time.Time) error {
	c.out.writeBy(t)
	return nil
}
