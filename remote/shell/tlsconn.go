package shell

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
)

// secured is a TLS connection over TCP. What one Write is given leaves in one system call, if it is not much.
type secured struct {
	*tls.Conn
	below *cork
	done  func() // ends what watches its certificates; nil: nothing does. Set before it is used
}

func (c *secured) Write(b []byte) (int, error) {
	c.below.close()
	n, err := c.Conn.Write(b)
	return n, errors.Join(err, c.below.open())
}

// WriteNow implements nowWriter.
func (c *secured) WriteNow(b []byte) (done bool, err error) {
	c.below.close()
	if _, err = c.Conn.Write(b); err != nil {
		return false, err
	}
	return c.below.openNow()
}

// Finish implements nowWriter.
func (c *secured) Finish() error { return c.below.open() }

// Close implements net.Conn. It does not wait to tell the other end: frames say where they end.
func (c *secured) Close() error {
	if c.done != nil {
		c.done()
	}
	return c.below.Conn.Close()
}

// config is a caller's, with what all connections have in common.
func config(of *tls.Config, protocols ...string) *tls.Config {
	c := of.Clone()
	c.MinVersion, c.NextProtos = tls.VersionTLS13, protocols
	c.DynamicRecordSizingDisabled = true // many bytes follow one another
	c.SessionTicketsDisabled = true      // who is there is checked each time
	return c
}

// handshake secures a connection, which it closes if that cannot be.
func handshake(ctx context.Context, tcp net.Conn, side func(net.Conn, *tls.Config) *tls.Conn, c *tls.Config) (*secured, error) {
	below := newCork(tcp)
	s := &secured{Conn: side(below, c), below: below}
	if err := s.HandshakeContext(ctx); err != nil {
		_ = tcp.Close() // err says more
		return nil, fmt.Errorf("remote: handshake with %v: %w", tcp.RemoteAddr(), err)
	}
	return s, nil
}
