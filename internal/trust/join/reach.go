package join

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"sync"
	"time"

	"mobula/internal/trust"
)

// reachProtocol is, by ALPN, what a server connects for that looks whether it reaches a node where that says that it is.
const reachProtocol = "mobula-reach"

// reachTime bounds how long a server tries to reach a node.
const reachTime = 5 * time.Second

// Listener is a port's listener before the node is of a cluster.
type Listener interface {
	net.Listener
	SetDeadline(time.Time) error
}

// Answer answers servers that look whether they reach this node, until stop, which leaves the listener as it was. The key is the one that the node
// asks to have certified.
func Answer(l Listener, key ed25519.PrivateKey) (stop func() error, err error) {
	cert, err := ofItself(key)
	if err != nil {
		return nil, err
	}
	cfg := &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{cert}, NextProtos: []string{reachProtocol}, SessionTicketsDisabled: true}
	var work sync.WaitGroup
	var failed error
	work.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				if !errors.Is(err, os.ErrDeadlineExceeded) {
					failed = err
				}
				return
			}
			work.Go(func() {
				defer func() { _ = c.Close() }() // the handshake was all
				_ = c.SetDeadline(time.Now().Add(reachTime))
				_ = tls.Server(c, cfg).Handshake() // who asks hears how it ended
			})
		}
	})
	return func() error {
		err := l.SetDeadline(time.Unix(1, 0))
		work.Wait()
		return errors.Join(err, failed, l.SetDeadline(time.Time{}))
	}, nil
}

// ofItself is a certificate that says nothing but the key.
func ofItself(key ed25519.PrivateKey) (tls.Certificate, error) {
	raw, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{SerialNumber: big.NewInt(1)}, &x509.Certificate{SerialNumber: big.NewInt(1)}, key.Public(), key)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("join: %w", err)
	}
	return tls.Certificate{Certificate: [][]byte{raw}, PrivateKey: key}, nil
}

// reaches tells whether the node with a key is at an address.
func reaches(ctx context.Context, address string, key ed25519.PublicKey) error {
	ctx, cancel := context.WithTimeout(ctx, reachTime)
	defer cancel()
	d := tls.Dialer{Config: &tls.Config{
		MinVersion: tls.VersionTLS13, NextProtos: []string{reachProtocol},
		InsecureSkipVerify: true, // what is known is the key: VerifyConnection compares it
		VerifyConnection: func(cs tls.ConnectionState) error {
			if !key.Equal(cs.PeerCertificates[0].PublicKey) {
				return errors.New("another node answers there")
			}
			return nil
		},
	}}
	c, err := d.DialContext(ctx, "tcp", address)
	if err != nil {
		return err
	}
	return c.Close()
}

// checkReach refuses a node that this server does not reach where the node says that it is. from is where its question came from.
func checkReach(ctx context.Context, q request, from net.Addr, key ed25519.PublicKey) error {
	err := reaches(ctx, q.Address, key)
	if err == nil || ctx.Err() != nil {
		return err
	}
	return trust.Refuse(trust.ErrUnreachable, "the server cannot reach this node at %.256q, where it says that it is (%v); it connected from %v. "+
		"If it is behind a NAT or a firewall, give an address from which connections come through to it with --advertise, "+
		"or start it on a machine of the cluster's network", q.Address, err, from)
}
