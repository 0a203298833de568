package shell

import (
	"context"
	"log"
	"net"
	"sync/atomic"
	"time"

	"github.com/hashicorp/memberlist"
)

// transport counts what is sent, and ends dials when the node ends.
type transport struct {
	memberlist.NodeAwareTransport
	dialer  net.Dialer
	life    context.Context
	sent    atomic.Uint64 // bytes of packets
	packets atomic.Uint64
}

// listen opens the gossip's port for UDP and TCP. Where any port will do, one that is free for TCP may be taken for UDP: then it tries again.
func listen(ip string, port int, to *log.Logger) (t *memberlist.NetTransport, err error) {
	for range 10 {
		t, err = memberlist.NewNetTransport(&memberlist.NetTransportConfig{BindAddrs: []string{ip}, BindPort: port, Logger: to})
		if err == nil || port != 0 {
			break
		}
	}
	return t, err
}

// WriteToAddress implements memberlist.NodeAwareTransport.
func (t *transport) WriteToAddress(b []byte, a memberlist.Address) (time.Time, error) {
	t.sent.Add(uint64(len(b)))
	t.packets.Add(1)
	return t.NodeAwareTransport.WriteToAddress(b, a)
}

// DialAddressTimeout implements memberlist.NodeAwareTransport. The connection ends with the node: memberlist would wait for its answer.
func (t *transport) DialAddressTimeout(a memberlist.Address, timeout time.Duration) (net.Conn, error) {
	c, err := t.dial(a, timeout)
	if err != nil {
		return nil, err
	}
	return &ending{c, context.AfterFunc(t.life, func() { _ = c.Close() })}, nil
}

func (t *transport) dial(a memberlist.Address, timeout time.Duration) (net.Conn, error) {
	if _, network := t.NodeAwareTransport.(*memberlist.NetTransport); !network {
		return t.NodeAwareTransport.DialAddressTimeout(a, timeout)
	}
	d := t.dialer
	d.Timeout = timeout
	return d.DialContext(t.life, "tcp", a.Addr)
}

// ending is a connection that ends with the node.
type ending struct {
	net.Conn
	keep func() bool
}

// Close closes the connection.
func (e *ending) Close() error {
	e.keep()
	return e.Conn.Close()
}
