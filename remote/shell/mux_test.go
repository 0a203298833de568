package shell

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestMuxTellsProtocolsApart(t *testing.T) {
	server, client := configs(1)
	m := serve(t, server)
	acceptors := make(map[string]*Acceptor)
	for _, p := range []string{ALPN, "other/1"} {
		a, err := m.Register(p)
		if err != nil {
			t.Fatal(err)
		}
		acceptors[p] = a
	}
	if _, err := m.Register(ALPN); err == nil {
		t.Error("a protocol is registered twice")
	}
	for p, a := range acceptors {
		c := client.Clone()
		c.NextProtos = []string{p}
		conn, err := tls.Dial("tcp", m.Addr().String(), c)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		got, err := a.Accept()
		if err != nil {
			t.Fatal(err)
		}
		defer got.Close()
		if s := got.ConnectionState(); s.NegotiatedProtocol != p || s.PeerCertificates[0].DNSNames[0] != name(1) || s.Version != tls.VersionTLS13 {
			t.Errorf("%+v", s)
		}
		if _, err := got.Write([]byte(p)); err != nil {
			t.Error(err)
		}
		b := make([]byte, len(p))
		if _, err := io.ReadFull(conn, b); err != nil || string(b) != p {
			t.Errorf("%q, %v", b, err)
		}
	}
	if err := acceptors["other/1"].Close(); err != nil {
		t.Error(err)
	}
	if _, err := acceptors["other/1"].Accept(); !errors.Is(err, net.ErrClosed) {
		t.Error(err)
	}
	refused := map[string]func(*tls.Config){
		"gone":           func(c *tls.Config) { c.NextProtos = []string{"other/1"} },
		"unknown":        func(c *tls.Config) { c.NextProtos = []string{"h2", "http/1.1"} },
		"none":           func(c *tls.Config) { c.NextProtos = nil },
		"TLS 1.2":        func(c *tls.Config) { c.MaxVersion, c.NextProtos = tls.VersionTLS12, []string{ALPN} },
		"no certificate": func(c *tls.Config) { c.Certificates, c.NextProtos = nil, []string{ALPN} },
	}
	for what, set := range refused {
		c := client.Clone()
		set(c)
		conn, err := tls.Dial("tcp", m.Addr().String(), c)
		if err != nil {
			continue
		}
		n, err := conn.Read(make([]byte, 1))
		if err == nil || n > 0 {
			t.Errorf("%s: %d bytes, %v", what, n, err)
		}
		conn.Close()
	}
}

// Who speaks no TLS hears nothing but an alert, if anything.
func TestPlainTextGetsNothing(t *testing.T) {
	server, _ := configs(1)
	m := serve(t, server)
	if _, err := m.Register(ALPN); err != nil {
		t.Fatal(err)
	}
	for _, says := range []string{"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "CONNECT {}\r\n", "\x80\x2e\x01\x00\x02", "\x00\x00\x00\x05\x01hello", "SSH-2.0-x\r\n", "\x16\x03\x01\x00\x01\x01"} {
		conn, err := net.Dial("tcp", m.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Write([]byte(says)); err != nil {
			t.Fatal(err)
		}
		if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(conn)
		if err != nil && !errors.Is(err, syscall.ECONNRESET) {
			t.Error(err)
		}
		const alert = 21
		if len(got) > 0 && (got[0] != alert || len(got) != 7) {
			t.Errorf("%q is answered by %q", says, got)
		}
		conn.Close()
	}
}

// A stranger who says nothing is given up.
func TestSilentStrangersAreGivenUp(t *testing.T) {
	server, _ := configs(1)
	m := serve(t, server, func(m *Mux) { m.patience = 20 * time.Millisecond })
	conn, err := net.Dial("tcp", m.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if got, err := io.ReadAll(conn); len(got) > 0 || err != nil && !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("%q, %v", got, err)
	}
}

func TestMuxRefusesConfigurations(t *testing.T) {
	server, _ := configs(1)
	server.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) { return nil, nil }
	if _, err := NewMux(nil, server, nil); err == nil || !strings.Contains(err.Error(), "GetConfigForClient") {
		t.Error(err)
	}
}

// What one Write is given leaves in one system call.
func TestOneWriteIsOneCall(t *testing.T) {
	server, client := configs(1)
	m := serve(t, server)
	a, err := m.Register(ALPN)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := NewTCP(a, client, net.Dialer{}, nil).Dial(t.Context(), m.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	other, err := a.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	s := conn.(*secured)
	counted := &counted{Conn: s.below.Conn}
	s.below.Conn = counted
	for want, size := range []int{0, 100, 60_000} { // of four records
		if size == 0 {
			continue
		}
		if _, err := s.Write(make([]byte, size)); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(other, make([]byte, size)); err != nil {
			t.Fatal(err)
		}
		if counted.writes != want {
			t.Errorf("%d bytes: %d calls in all, want %d", size, counted.writes, want)
		}
	}
}

type counted struct {
	net.Conn
	writes int
}

func (c *counted) Write(b []byte) (int, error) {
	c.writes++
	return c.Conn.Write(b)
}

// A port that accepts and never says a word of TLS is given up, and named to whoever waits.
func TestAPortThatNeverAnswers(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() // the kernel accepts, and nobody else
	nw := newTCPNetwork()
	nw.ports[2] = l.Addr().String()
	a := start(t, nw, 1, 1, func(c *Config) { c.Core.Handshake = 50 * time.Millisecond })
	a.sendAll(2, 0, 1)
	s := a.awaitPeer(2, func(s Status) bool { return s.Err != nil })
	if !errors.Is(s.Err, context.DeadlineExceeded) || !strings.Contains(s.Err.Error(), l.Addr().String()) {
		t.Errorf("it is given up with %v", s.Err)
	}
	b := start(t, nw, 2, 1)
	check(t, b.awaitMessages(1), a.life, 0, 1)
}
