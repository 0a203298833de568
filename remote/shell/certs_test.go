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
	"slices"
	"sync"
	"testing"
	"time"

	"mobula/internal/ids"
)

// authority signs the certificates of tests.
var authority = sync.OnceValue(func() *signer {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	s := &signer{key: key, of: &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}}
	der, err := x509.CreateCertificate(rand.Reader, s.of, s.of, &key.PublicKey, key)
	if err != nil {
		panic(err)
	}
	if s.of, err = x509.ParseCertificate(der); err != nil {
		panic(err)
	}
	s.pool = x509.NewCertPool()
	s.pool.AddCert(s.of)
	return s
})

type signer struct {
	key  *ecdsa.PrivateKey
	of   *x509.Certificate
	pool *x509.CertPool
}

// certificate is that of a node.
func (s *signer) certificate(home ids.Home) tls.Certificate {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	of := &x509.Certificate{
		SerialNumber: big.NewInt(int64(home) + 2), DNSNames: []string{name(home), "any-node"}, NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, of, s.of, &key.PublicKey, s.key)
	if err != nil {
		panic(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// configs are those of a node: to accept with, and to dial with.
func configs(home ids.Home) (server, client *tls.Config) {
	s := authority()
	cert := []tls.Certificate{s.certificate(home)}
	return &tls.Config{Certificates: cert, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: s.pool},
		&tls.Config{Certificates: cert, RootCAs: s.pool, ServerName: "any-node"}
}

// tcpNetwork is nodes at ports of the loopback.
type tcpNetwork struct {
	mu    sync.Mutex
	ports map[ids.Home]string // guarded by mu: of each node's present life
}

func newTCPNetwork() *tcpNetwork { return &tcpNetwork{ports: make(map[ids.Home]string)} }

func (n *tcpNetwork) listen(t testing.TB, home ids.Home) Transport { return n.listenAs(t, home, home) }

// listenAs is listen with the certificate of another node.
func (n *tcpNetwork) listenAs(t testing.TB, home, cert ids.Home) Transport {
	server, client := configs(cert)
	m := serve(t, server)
	n.mu.Lock()
	n.ports[home] = m.Addr().String()
	n.mu.Unlock()
	a, err := m.Register(ALPN)
	if err != nil {
		t.Fatal(err)
	}
	return NewTCP(a, client, net.Dialer{}, nil)
}

// serve shares a port, until the test ends.
func serve(t testing.TB, cfg *tls.Config, set ...func(*Mux)) *Mux {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	m, err := NewMux(l, cfg, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range set {
		f(m)
	}
	served := make(chan error, 1)
	go func() { served <- m.Serve() }()
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return m
}

func (n *tcpNetwork) address(_ context.Context, home ids.Home) (string, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if a := n.ports[home]; a != "" {
		return a, nil
	}
	return "", fmt.Errorf("node %v has no port", home)
}

func (n *tcpNetwork) verify(s tls.ConnectionState, home ids.Home) error {
	if names := s.PeerCertificates[0].DNSNames; !slices.Contains(names, name(home)) {
		return fmt.Errorf("a certificate of %v, not of %s", names, name(home))
	}
	return nil
}
