package shell

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"math/big"
	"net"
	"sync"
	"syscall"
	"testing"
	"time"

	"mobula/internal/ids"
	"mobula/remote/transfer"
)

// network is the connections of a test, which it can count and cut.
type network struct {
	kind  string
	pipes *Pipes
	ca    *authority // nil: no TLS
	mu    sync.Mutex
	addrs map[ids.Home]string // guarded by mu
	wires map[*wire]bool      // guarded by mu: those that are open
	sent  map[ids.Home]int64  // guarded by mu: bytes
	at    map[ids.Home]mark   // guarded by mu
	dead  map[ids.Home]bool   // guarded by mu: they are not reached any more
	stops map[ids.Home]stop   // guarded by mu: they do nothing
}

// stop is that of a node's processes, until its end.
type stop chan struct{}

// mark has something done once a node has sent so many bytes.
type mark struct {
	bytes int64
	do    func()
}

// wire is a connection as the network sees it, below TLS.
type wire struct {
	net.Conn
	n    *network
	home ids.Home
	peer ids.Home // without TLS
}

func (w *wire) Read(b []byte) (int, error) {
	n, err := w.Conn.Read(b)
	w.stopped()
	return n, err
}

// stopped waits while the node is stopped.
func (w *wire) stopped() {
	w.n.mu.Lock()
	s := w.n.stops[w.home]
	w.n.mu.Unlock()
	if s != nil {
		<-s
	}
}

func (w *wire) Write(b []byte) (int, error) {
	w.stopped()
	n, err := w.Conn.Write(b)
	w.n.mu.Lock()
	w.n.sent[w.home] += int64(n)
	m, ok := w.n.at[w.home]
	if ok = ok && w.n.sent[w.home] >= m.bytes; ok {
		delete(w.n.at, w.home)
	}
	w.n.mu.Unlock()
	if ok {
		m.do()
	}
	return n, err
}

func (w *wire) Close() error {
	w.n.mu.Lock()
	delete(w.n.wires, w)
	w.n.mu.Unlock()
	return w.Conn.Close()
}

// networks are those that the conformance tests run on.
func networks(t *testing.T, run func(t *testing.T, n *network)) {
	for _, kind := range []string{"pipes", "tls", "local", "mixed"} {
		t.Run(kind, func(t *testing.T) { run(t, newNetwork(t, kind)) })
	}
}

func newNetwork(t testing.TB, kind string) *network {
	n := &network{kind: kind, pipes: NewPipes(), addrs: map[ids.Home]string{}, wires: map[*wire]bool{}, sent: map[ids.Home]int64{}, at: map[ids.Home]mark{}, dead: map[ids.Home]bool{}, stops: map[ids.Home]stop{}}
	if kind == "tls" {
		n.ca = newAuthority(t)
	}
	return n
}

func (n *network) wire(c net.Conn, home ids.Home) *wire {
	n.mu.Lock()
	defer n.mu.Unlock()
	w := &wire{Conn: c, n: n, home: home}
	n.wires[w] = true
	return w
}

// SameMachine implements SameMachine. In a mixed network two nodes next to each other are on one machine.
func (w *wire) SameMachine() bool {
	return w.n.kind == "local" || w.n.kind == "mixed" && w.peer != 0 && min(w.home, w.peer)%2 == 1 && max(w.home, w.peer) == min(w.home, w.peer)+1
}

// cut breaks all connections.
func (n *network) cut() {
	n.mu.Lock()
	all := n.wires
	n.wires = map[*wire]bool{}
	n.mu.Unlock()
	for w := range all {
		_ = w.Conn.Close()
	}
}

// kill breaks the connections of a node, which makes no more.
func (n *network) kill(home ids.Home) {
	n.mu.Lock()
	n.dead[home] = true
	var all []*wire
	for w := range n.wires {
		if w.home == home {
			all = append(all, w)
			delete(n.wires, w)
		}
	}
	n.mu.Unlock()
	for _, w := range all {
		_ = w.Conn.Close()
	}
}

// stop has a node do nothing until the test ends: its connections stay.
func (n *network) stop(t testing.TB, home ids.Home) {
	s := make(stop)
	n.mu.Lock()
	n.stops[home] = s
	n.mu.Unlock()
	t.Cleanup(func() {
		n.mu.Lock()
		delete(n.stops, home)
		n.mu.Unlock()
		close(s)
	})
}

// reaches tells whether two nodes reach each other.
func (n *network) reaches(a, b ids.Home) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return !n.dead[a] && !n.dead[b]
}

// when has something done once a node has sent so many bytes, on the goroutine that sends.
func (n *network) when(home ids.Home, bytes int64, do func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.at[home] = mark{bytes, do}
}

func (n *network) sentBy(home ids.Home) int64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.sent[home]
}

// node gives a node's transport.
func (n *network) node(t testing.TB, home ids.Home) Transport {
	if n.kind == "pipes" {
		return &wired{n, home, n.pipes.Node(home)}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	n.mu.Lock()
	n.addrs[home] = l.Addr().String()
	n.mu.Unlock()
	e := &tcpEnd{n: n, home: home, Listener: l}
	if n.ca != nil {
		e.cert = n.ca.issue(t, home)
	}
	return e
}

// wired is a node of Pipes.
type wired struct {
	n    *network
	home ids.Home
	Transport
}

func (w *wired) Dial(ctx context.Context, to ids.Home) (net.Conn, error) {
	if !w.n.reaches(w.home, to) {
		return nil, syscall.ECONNREFUSED
	}
	c, err := w.Transport.Dial(ctx, to)
	if err != nil {
		return nil, err
	}
	return w.n.wire(c, w.home), nil
}

func (w *wired) Accept() (net.Conn, ids.Home, error) {
	c, from, err := w.Transport.Accept()
	if err != nil {
		return nil, 0, err
	}
	return w.n.wire(c, w.home), from, nil
}

// tcpEnd is a node on the loopback. Without TLS it believes what the other node says.
type tcpEnd struct {
	n    *network
	home ids.Home
	net.Listener
	cert tls.Certificate
}

func (e *tcpEnd) config(to string) *tls.Config {
	return &tls.Config{
		Certificates: []tls.Certificate{e.cert}, RootCAs: e.n.ca.pool, ClientCAs: e.n.ca.pool, ClientAuth: tls.RequireAndVerifyClientCert,
		ServerName: to, NextProtos: []string{transfer.Protocol}, MinVersion: tls.VersionTLS13,
	}
}

func (e *tcpEnd) Dial(ctx context.Context, to ids.Home) (net.Conn, error) {
	if !e.n.reaches(e.home, to) {
		return nil, syscall.ECONNREFUSED
	}
	e.n.mu.Lock()
	addr := e.n.addrs[to]
	e.n.mu.Unlock()
	raw, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	c := e.n.wire(raw, e.home)
	if e.n.ca == nil {
		c.peer = to
		if _, err := c.Write([]byte{byte(e.home)}); err != nil {
			_ = c.Close()
			return nil, err
		}
		return c, nil
	}
	s := tls.Client(c, e.config(nodeName(to)))
	if err := s.HandshakeContext(ctx); err != nil {
		_ = c.Close()
		return nil, err
	}
	return s, nil
}

func (e *tcpEnd) Accept() (net.Conn, ids.Home, error) {
	for {
		raw, err := e.Listener.Accept()
		if err != nil {
			return nil, 0, err
		}
		c := e.n.wire(raw, e.home)
		if e.n.ca == nil {
			var who [1]byte
			if _, err := c.Read(who[:]); err == nil {
				c.peer = ids.Home(who[0])
				return c, c.peer, nil
			}
			_ = c.Close()
			continue
		}
		s := tls.Server(c, e.config(""))
		ctx, cancel := context.WithTimeout(context.Background(), DialTimeout)
		err = s.HandshakeContext(ctx)
		cancel()
		if err == nil {
			var who ids.Home
			if _, err = fmt.Sscanf(s.ConnectionState().PeerCertificates[0].DNSNames[0], "node-%d", &who); err == nil {
				return s, who, nil
			}
		}
		_ = c.Close()
	}
}

func nodeName(home ids.Home) string { return fmt.Sprintf("node-%d", home) }

// authority issues the certificates of a test.
type authority struct {
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
	pool *x509.CertPool
}

func newAuthority(t testing.TB) *authority {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(cert)
	return &authority{key, cert, pool}
}

func (a *authority) issue(t testing.TB, home ids.Home) tls.Certificate {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(int64(home) + 1), DNSNames: []string{nodeName(home)}, NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &key.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}
