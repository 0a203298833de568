package nodeport

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"testing"
	"time"

	"mobula/internal/ids"
	"mobula/internal/testkit"
	"mobula/internal/trust"
	"mobula/internal/trust/credentials"
	"mobula/internal/trust/trusttest"
	transfershell "mobula/remote/transfer/shell"
)

// node is one with a port on the loopback, for objects.
type node struct {
	home ids.Home
	port *Port
	at   string
	transfershell.Transport
}

// objectNodes are nodes of one cluster. to gives where a node is dialed; nil: where it is.
func objectNodes(t *testing.T, n int, to func(ids.Home, string) string) []*node {
	t.Helper()
	cluster := trusttest.NewCluster(t)
	var all []*node
	for i := range n {
		l, err := Listen("127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		x := &node{home: ids.Home(i + 1), at: l.Addr().String()}
		if x.port, err = New(l, cluster.Live(t, trust.Data, x.home, 1), net.Dialer{}, slog.New(slog.DiscardHandler)); err != nil {
			t.Fatal(err)
		}
		all = append(all, x)
	}
	for _, x := range all {
		var err error
		x.Transport, err = x.port.Objects(func(_ context.Context, home ids.Home) (string, error) {
			at := all[home-1].at
			if to != nil {
				at = to(home, at)
			}
			return at, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		served := make(chan error, 1)
		go func() { served <- x.port.Serve() }()
		t.Cleanup(func() {
			_, _ = x.Close(), x.port.Close()
			if err := testkit.Receive(t, "the port's end", served); err != nil {
				t.Error(err)
			}
		})
	}
	return all
}

// connect connects one node to another, and gives both ends.
func connect(t *testing.T, from, to *node) (dialed, accepted net.Conn) {
	t.Helper()
	type end struct {
		c    net.Conn
		home ids.Home
		err  error
	}
	ends := make(chan end, 1)
	go func() {
		c, home, err := to.Accept()
		ends <- end{c, home, err}
	}()
	dialed, err := from.Dial(testkit.Within(t), to.home)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = dialed.Close() })
	e := testkit.Receive(t, "a connection", ends)
	if e.err != nil || e.home != from.home {
		t.Fatalf("node %v is there, %v", e.home, e.err)
	}
	t.Cleanup(func() { _ = e.c.Close() })
	return dialed, e.c
}

// said has each end say something at once, and hear the other.
func said(t *testing.T, a, b net.Conn, words []byte) {
	t.Helper()
	var all sync.WaitGroup
	for _, ends := range [][2]net.Conn{{a, b}, {b, a}} {
		all.Go(func() {
			if _, err := ends[0].Write(words); err != nil {
				t.Error(err)
			}
		})
		all.Go(func() {
			got := make([]byte, len(words))
			if _, err := io.ReadFull(ends[1], got); err != nil || !bytes.Equal(got, words) {
				t.Errorf("other bytes arrived, %v", err)
			}
		})
	}
	all.Wait()
}

func bareConn(c net.Conn) bool {
	return c.(transfershell.SameMachine).SameMachine()
}

var secret = bytes.Repeat([]byte("bytes of an object. "), 50_000)

// Two nodes of one machine are connected in clear, once each knows who the other is.
func TestObjectsOnTheLoopbackGoInClear(t *testing.T) {
	all := objectNodes(t, 2, nil)
	a, b := connect(t, all[0], all[1])
	if !bareConn(a) || !bareConn(b) {
		t.Error("the connection is encrypted")
	}
	said(t, a, b, secret)
}

// Behind an address of the loopback there may be a tunnel to elsewhere: what goes through it is encrypted.
func TestObjectsThroughATunnelAreEncrypted(t *testing.T) {
	tunnel := newTunnel(t)
	all := objectNodes(t, 2, func(_ ids.Home, at string) string { return tunnel.to(at) })
	a, b := connect(t, all[0], all[1])
	if bareConn(a) || bareConn(b) {
		t.Error("the connection is in clear")
	}
	said(t, a, b, secret)
	tunnel.mu.Lock()
	defer tunnel.mu.Unlock()
	if len(tunnel.seen) < 2*len(secret) || bytes.Contains(tunnel.seen, secret[:40]) {
		t.Errorf("the tunnel has seen %d bytes, in clear", len(tunnel.seen))
	}
}

// tunnel passes connections on, and looks at what goes through.
type tunnel struct {
	l    net.Listener
	work sync.WaitGroup

	mu   sync.Mutex
	at   string // guarded by mu
	seen []byte // guarded by mu
}

func newTunnel(t *testing.T) *tunnel {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	u := &tunnel{l: l}
	u.work.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			u.mu.Lock()
			at := u.at
			u.mu.Unlock()
			on, err := net.Dial("tcp", at)
			if err != nil {
				_ = c.Close()
				continue
			}
			u.work.Go(func() { u.pass(c, on) })
			u.work.Go(func() { u.pass(on, c) })
		}
	})
	t.Cleanup(func() { _ = l.Close(); u.work.Wait() })
	return u
}

func (u *tunnel) to(at string) string {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.at = at
	return u.l.Addr().String()
}

func (u *tunnel) pass(from, to net.Conn) {
	defer from.Close()
	defer to.Close()
	b := make([]byte, 64<<10)
	for {
		n, err := from.Read(b)
		u.mu.Lock()
		u.seen = append(u.seen, b[:n]...)
		u.mu.Unlock()
		if _, e := to.Write(b[:n]); err != nil || e != nil {
			return
		}
	}
}

// A node that knows only the protocol under TLS, as those of an earlier release, is understood, whichever of the two dials.
func TestObjectsOfAnOlderNode(t *testing.T) {
	all := objectNodes(t, 2, nil)
	for _, a := range all[1].Transport.(*objects).acceptors[1:] { // of hereALPN
		_ = a.Close()
	}
	a, b := connect(t, all[0], all[1])
	if bareConn(a) || bareConn(b) {
		t.Error("the connection is in clear")
	}
	said(t, a, b, secret)
}

// A node that goes silent before the two have agreed ends nothing but its own connection.
func TestANodeThatDoesNotSayWhereItIs(t *testing.T) {
	all := objectNodes(t, 2, nil)
	cfg := all[0].port.live.Config(credentials.Peer{May: trust.Transfer, Home: &all[1].home})
	cfg.NextProtos = []string{hereALPN}
	silent, err := tls.Dial("tcp", all[1].at, cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	a, b := connect(t, all[0], all[1])
	said(t, a, b, secret)

	// The dialer, whose context ends.
	mute, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer mute.Close()
	here, err := net.Dial("tcp", mute.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer here.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if _, err := settle(ctx, here, here, true); err == nil {
		t.Error("a node that says nothing has agreed")
	} else if ctx.Err() == nil {
		t.Errorf("gave up early: %v", err)
	}
}

// Neither end goes on in clear with an end that sees another connection, and bytes that are none of the protocol are refused.
func TestPlacesThatDoNotMeet(t *testing.T) {
	mine := place{namespace: 7, own: netip.MustParseAddrPort("127.0.0.1:1000"), peer: netip.MustParseAddrPort("127.0.0.2:2000")}
	copy(mine.boot[:], "boot")
	theirs := mine
	theirs.own, theirs.peer = mine.peer, mine.own
	if got := decodePlace(theirs.encode()); got != theirs || !mine.meets(got) || !got.meets(mine) {
		t.Fatalf("%+v does not meet %+v", mine, got)
	}
	six := place{own: netip.MustParseAddrPort("[::1]:1"), peer: netip.MustParseAddrPort("[::1]:2")}
	if got := decodePlace(six.encode()); got != six {
		t.Errorf("%+v arrives as %+v", six, got)
	}
	for what, change := range map[string]func(*place){
		"another boot": func(p *place) { p.boot[0]++ }, "another namespace": func(p *place) { p.namespace++ },
		"another port here": func(p *place) { p.peer = netip.AddrPortFrom(p.peer.Addr(), 1) }, "another port there": func(p *place) { p.own = netip.AddrPortFrom(p.own.Addr(), 1) },
		"nowhere": func(p *place) { *p = place{} },
	} {
		p := theirs
		change(&p)
		if mine.meets(p) || p.meets(mine) {
			t.Errorf("%s: the places meet", what)
		}
	}

	a, b := tcpPair(t)
	go func() {
		p, _ := placeOf(a)
		_, _ = a.Write(append(p.encode(), 'x')) // not bare
	}()
	if _, err := settle(testkit.Within(t), b, b, false); err == nil {
		t.Error("a byte that is not of the protocol was taken")
	}
}

// tcpPair is a connection on the loopback.
func tcpPair(t *testing.T) (a, b *net.TCPConn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	one, err := net.Dial("tcp", l.Addr().String())
	two, err2 := l.Accept()
	if err := errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = one.Close(), two.Close() })
	return one.(*net.TCPConn), two.(*net.TCPConn)
}
