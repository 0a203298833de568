package nodeport

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"

	"mobula/internal/ids"
	"mobula/internal/trust"
	"mobula/internal/trust/credentials"
	remoteshell "mobula/remote/shell"
	transfershell "mobula/remote/transfer/shell"
)

// objects is the transport of objects: connections of their own, so that no message waits behind one.
type objects struct {
	port     *Port
	acceptor *remoteshell.Acceptor
	address  func(context.Context, ids.Home) (string, error)
	dialer   net.Dialer
}

// Objects is the transport of objects. address gives where a node is.
func (p *Port) Objects(address func(context.Context, ids.Home) (string, error)) (transfershell.Transport, error) {
	a, err := p.mux.Register(ObjectsALPN)
	if err != nil {
		return nil, err
	}
	return &objects{port: p, acceptor: a, address: address}, nil
}

// Dial implements transfershell.Transport.
func (o *objects) Dial(ctx context.Context, to ids.Home) (net.Conn, error) {
	at, err := o.address(ctx, to)
	if err != nil {
		return nil, err
	}
	cfg := o.port.live.Config(credentials.Peer{May: trust.Transfer, Home: &to})
	cfg.NextProtos, cfg.DynamicRecordSizingDisabled = []string{ObjectsALPN}, true // many bytes follow one another
	tcp, err := o.dialer.DialContext(ctx, "tcp", at)
	if err != nil {
		return nil, err
	}
	c := tls.Client(&ahead{Conn: tcp}, cfg)
	if err := c.HandshakeContext(ctx); err != nil {
		_ = tcp.Close() // err says more
		return nil, fmt.Errorf("objects of node %v at %s: %w", to, at, err)
	}
	return o.watched(c)
}

// Accept implements transfershell.Transport. A connection whose certificate counts no more is passed over.
func (o *objects) Accept() (net.Conn, ids.Home, error) {
	for {
		c, err := o.acceptor.Accept()
		if err != nil {
			return nil, 0, err
		}
		from, err := credentials.HomeOf(c.ConnectionState())
		if err != nil {
			_ = c.Close() // nobody is there
			continue
		}
		if w, err := o.watched(c); err == nil {
			return w, from, nil
		}
	}
}

// Close implements transfershell.Transport.
func (o *objects) Close() error { return o.acceptor.Close() }

// watched has a connection cut when its certificate counts no more.
func (o *objects) watched(c remoteshell.Conn) (net.Conn, error) {
	done, err := o.port.live.Track(c.ConnectionState(), func(error) { _ = c.Close() })
	if err != nil {
		_ = c.Close() // err says more
		return nil, err
	}
	return &watched{Conn: c, done: done}, nil
}

// watched is a connection that the credentials know.
type watched struct {
	net.Conn
	done func()
}

func (w *watched) Close() error {
	w.done()
	return w.Conn.Close()
}
