package shell

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
)

// Track watches a connection from when it is made until done is called: it calls cut when the certificates of the other end count no more. An error
// says that they count no more already.
type Track func(cs tls.ConnectionState, cut func(error)) (done func(), err error)

// TCP is the transport over TCP with TLS 1.3. It accepts at a port that it may share with other protocols.
type TCP struct {
	acceptor *Acceptor
	client   *tls.Config
	dialer   net.Dialer
	track    Track // nil: nobody watches
}

// NewTCP makes a transport of what a Mux accepts for ALPN, and of the configuration and the dialer to dial with. Both sides should demand certificates; whose these are
// Config.Verify looks at. track may be nil.
func NewTCP(acceptor *Acceptor, client *tls.Config, dialer net.Dialer, track Track) *TCP {
	return &TCP{acceptor: acceptor, client: config(client, ALPN), dialer: dialer, track: track}
}

// Dial implements Transport.
func (t *TCP) Dial(ctx context.Context, address string) (Conn, error) {
	c := t.client
	if c.ServerName == "" && !c.InsecureSkipVerify {
		host, _, err := net.SplitHostPort(address)
		if err != nil {
			return nil, err
		}
		c = c.Clone()
		c.ServerName = host
	}
	tcp, err := t.dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	s, err := handshake(ctx, tcp, tls.Client, c)
	if err != nil {
		return nil, err
	}
	if got := s.ConnectionState().NegotiatedProtocol; got != ALPN {
		_ = s.Close() // it is of no use
		return nil, fmt.Errorf("%w: %s speaks %q, not %q", ErrALPN, address, got, ALPN)
	}
	return t.tracked(s)
}

// Accept implements Transport. A connection whose certificate counts no more is passed over.
func (t *TCP) Accept() (Conn, error) {
	for {
		s, err := t.acceptor.accept()
		if err != nil {
			return nil, err
		}
		if c, err := t.tracked(s); err == nil {
			return c, nil
		}
	}
}

// tracked has a connection watched until it is closed.
func (t *TCP) tracked(s *secured) (Conn, error) {
	if t.track == nil {
		return s, nil
	}
	watched := make(chan struct{})
	done, err := t.track(s.ConnectionState(), func(error) {
		<-watched
		_ = s.Close() // who uses it learns that it is closed
	})
	if err != nil {
		_ = s.Close() // err says more
		return nil, err
	}
	s.done = done
	close(watched)
	return s, nil
}

// Close implements Transport. The port stays open for other protocols.
func (t *TCP) Close() error { return t.acceptor.Close() }
