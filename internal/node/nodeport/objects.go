package nodeport

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"sync"
	"time"

	"mobula/internal/ids"
	"mobula/internal/trust"
	"mobula/internal/trust/credentials"
	remoteshell "mobula/remote/shell"
	transfershell "mobula/remote/transfer/shell"
)

// settleTimeout bounds what is said before the first byte of objects.
const settleTimeout = 5 * time.Second

// objects is the transport of objects: connections of their own, so that no message waits behind one.
type objects struct {
	port      *Port
	acceptors []*remoteshell.Acceptor
	address   func(context.Context, ids.Home) (string, error)

	in    chan arrival
	life  context.Context // ends with Close
	end   context.CancelFunc
	group sync.WaitGroup
}

// arrival is a connection that another node has made.
type arrival struct {
	conn net.Conn
	from ids.Home
}

// Objects is the transport of objects. address gives where a node is.
func (p *Port) Objects(address func(context.Context, ids.Home) (string, error)) (transfershell.Transport, error) {
	o := &objects{port: p, address: address, in: make(chan arrival)}
	o.life, o.end = context.WithCancel(context.Background())
	for _, protocol := range []string{ObjectsALPN, hereALPN} {
		a, err := p.mux.Register(protocol)
		if err != nil {
			_ = o.Close() // err says more
			return nil, err
		}
		o.acceptors = append(o.acceptors, a)
		o.group.Go(func() { o.accept(a) })
	}
	return o, nil
}

// Dial implements transfershell.Transport.
func (o *objects) Dial(ctx context.Context, to ids.Home) (net.Conn, error) {
	at, err := o.address(ctx, to)
	if err != nil {
		return nil, err
	}
	cfg := o.port.live.Config(credentials.Peer{May: trust.Transfer, Home: &to})
	cfg.NextProtos, cfg.DynamicRecordSizingDisabled = []string{ObjectsALPN}, true // many bytes follow one another
	tcp, err := o.port.dialer.DialContext(ctx, "tcp", at)
	if err != nil {
		return nil, err
	}
	if mayBeHere(tcp) {
		cfg.NextProtos = append(cfg.NextProtos, hereALPN)
	}
	c := tls.Client(&ahead{Conn: tcp}, cfg)
	var on remoteshell.Conn = c
	if err = c.HandshakeContext(ctx); err == nil && c.ConnectionState().NegotiatedProtocol == hereALPN {
		on, err = settled(ctx, c, tcp, true)
	}
	if err != nil {
		_ = tcp.Close() // err says more
		return nil, fmt.Errorf("objects of node %v at %s: %w", to, at, err)
	}
	return o.watched(on)
}

// settled is settle of a connection whose certificates are wanted afterwards.
func settled(ctx context.Context, c remoteshell.Conn, below net.Conn, dialed bool) (remoteshell.Conn, error) {
	on, err := settle(ctx, c, below, dialed)
	if err != nil || on == net.Conn(c) {
		return c, err
	}
	return inClear{on, c.ConnectionState()}, nil
}

// accept takes connections of a protocol until the transport is closed.
func (o *objects) accept(a *remoteshell.Acceptor) {
	for {
		c, below, err := a.AcceptBelow()
		if err != nil {
			return
		}
		o.group.Go(func() { o.arrived(c, below) })
	}
}

// arrived hands on a connection that another node has made. One whose certificate counts no more is closed.
func (o *objects) arrived(c remoteshell.Conn, below net.Conn) {
	state := c.ConnectionState()
	from, err := credentials.HomeOf(state)
	if err == nil && state.NegotiatedProtocol == hereALPN {
		ctx, cancel := context.WithTimeout(o.life, settleTimeout)
		c, err = settled(ctx, c, below, false)
		cancel()
	}
	if err != nil {
		_ = below.Close() // nobody is there
		return
	}
	w, err := o.watched(c)
	if err != nil {
		return
	}
	select {
	case o.in <- arrival{w, from}:
	case <-o.life.Done():
		_ = w.Close() // nobody takes it
	}
}

// Accept implements transfershell.Transport.
func (o *objects) Accept() (net.Conn, ids.Home, error) {
	select {
	case a := <-o.in:
		return a.conn, a.from, nil
	case <-o.life.Done():
		return nil, 0, net.ErrClosed
	}
}

// Close implements transfershell.Transport.
func (o *objects) Close() (err error) {
	o.end()
	for _, a := range o.acceptors {
		_ = a.Close() // it says nothing
	}
	o.group.Wait()
	return nil
}

// watched has a connection cut when its certificate counts no more.
func (o *objects) watched(c remoteshell.Conn) (net.Conn, error) {
	done, err := o.port.live.Track(c.ConnectionState(), func(error) { _ = c.Close() })
	if err != nil {
		_ = c.Close() // err says more
		return nil, err
	}
	_, here := c.(inClear)
	return &watched{Conn: c, done: done, here: here}, nil
}

// watched is a connection that the credentials know.
type watched struct {
	net.Conn
	done func()
	here bool // it goes on in clear
}

// SameMachine implements transfershell.SameMachine: what goes in clear goes from one socket of this machine to the other.
func (w *watched) SameMachine() bool { return w.here }

func (w *watched) Close() error {
	w.done()
	return w.Conn.Close()
}
