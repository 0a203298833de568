package shell

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/subtle"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"math/big"
	"net"
	"slices"
	"sync"
	"syscall"

	"github.com/nats-io/nats-server/v2/server"

	"mobula/internal/trust"
	"mobula/internal/trust/credentials"
)

// door lets connections into a server that listens, by their certificates, and cuts those whose certificates count no more. A connection from within
// the process has a password instead.
type door struct {
	live     func() *credentials.Live
	system   func() *server.Account
	password string
	own      *tls.Certificate // of this process: what it shows itself, and everybody as long as it does not know who it is

	mu       sync.Mutex
	admitted []admitted // guarded by mu
	look     int        // guarded by mu: how many there are when those that have ended are looked for
}

// admitted is a connection that may have ended: NATS does not tell.
type admitted struct {
	conn net.Conn
	done func()
}

// systemUser is who asks about the set of servers, from within the process.
const systemUser = "system"

// errUnknown refuses connections as long as this node has no credentials.
var errUnknown = errors.New("control plane: this node does not know yet who it is")

// newDoor makes the secrets of the process.
func newDoor(live func() *credentials.Live, system func() *server.Account) (*door, error) {
	public, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	raw, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{SerialNumber: big.NewInt(1)}, &x509.Certificate{}, public, key)
	if err != nil {
		return nil, err
	}
	return &door{live: live, system: system, password: rand.Text(), own: &tls.Certificate{Certificate: [][]byte{raw}, PrivateKey: key}}, nil
}

// tls makes the configuration for both sides of a kind of connection. Who this node is is looked up for each handshake. Of a route that this server
// has dialed only the other side can be cut.
func (d *door) tls(may trust.Action) *tls.Config {
	cfg := &tls.Config{
		MinVersion:             tls.VersionTLS13,
		SessionTicketsDisabled: true,
		ClientAuth:             tls.RequireAnyClientCert,
		InsecureSkipVerify:     true, // host names prove nothing: VerifyConnection checks the certificate, and every handshake ends with it
		GetCertificate:         func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return d.certificate() },
		GetClientCertificate:   func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return d.certificate() },
		VerifyConnection:       func(cs tls.ConnectionState) error { return d.verify(may, cs) },
	}
	accepts := cfg.Clone()
	cfg.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		one := accepts.Clone()
		one.VerifyConnection = func(cs tls.ConnectionState) error {
			if err := d.verify(may, cs); err != nil || d.isOwn(cs) {
				return err
			}
			return d.admit(cs, hello.Conn)
		}
		return one, nil
	}
	return cfg
}

// ownTLS is for the other server in this process, which is known by the process' certificate.
func (d *door) ownTLS() *tls.Config {
	cfg := d.tls(trust.CarryTables)
	cfg.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return d.own, nil }
	return cfg
}

func (d *door) certificate() (*tls.Certificate, error) {
	live := d.live()
	if live == nil {
		return d.own, nil
	}
	return live.Open().GetCertificate(nil)
}

func (d *door) isOwn(cs tls.ConnectionState) bool {
	return len(cs.PeerCertificates) == 1 && bytes.Equal(cs.PeerCertificates[0].Raw, d.own.Certificate[0])
}

func (d *door) verify(may trust.Action, cs tls.ConnectionState) error {
	live := d.live()
	switch {
	case d.isOwn(cs):
		return nil
	case live == nil:
		return errUnknown
	}
	return live.Config(credentials.Peer{May: may}).VerifyConnection(cs)
}

// admit has a connection cut when its certificate counts no more.
func (d *door) admit(cs tls.ConnectionState, conn net.Conn) error {
	done, err := d.live().Track(cs, func(error) { _ = conn.Close() }) // it has ended or it ends
	if err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.admitted) >= d.look {
		d.admitted = slices.DeleteFunc(d.admitted, func(a admitted) bool {
			if !ended(a.conn) {
				return false
			}
			a.done()
			return true
		})
		d.look = 2*len(d.admitted) + 16
	}
	d.admitted = append(d.admitted, admitted{conn, done})
	return nil
}

// ended tells whether a connection was closed on this side.
func ended(conn net.Conn) bool {
	sc, ok := conn.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := sc.SyscallConn()
	return err != nil || errors.Is(raw.Control(func(uintptr) {}), net.ErrClosed)
}

// close ends the watch on what was admitted.
func (d *door) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, a := range d.admitted {
		a.done()
	}
	d.admitted = nil
}

// Check implements server.Authentication: it tells NATS what a client may do.
func (d *door) Check(c server.ClientAuthentication) bool {
	cs := c.GetTLSConnectionState()
	if cs == nil {
		own := c.GetOpts()
		if subtle.ConstantTimeCompare([]byte(own.Password), []byte(d.password)) != 1 {
			return false
		}
		if own.Username == systemUser {
			c.RegisterUser(&server.User{Username: systemUser, Account: d.system()})
		}
		return true
	}
	if len(cs.PeerCertificates) == 0 {
		return false
	}
	name, err := credentials.NameOf(cs.PeerCertificates[0])
	if err != nil {
		return false
	}
	c.RegisterUser(&server.User{Username: name.String(), Permissions: permissions(name)})
	return true
}

// permissions are what NATS lets a node do by itself; nil: everything but what is of the system account. A node that may not write rows of other
// homes gets no subject of JetStream, not even to read or to write its own row: NATS sends an answer to whatever subject the request names, where it
// is taken as a row, or as the request of another home. It speaks with the service alone, on subjects that have its home in them.
func permissions(n trust.Name) *server.Permissions {
	if trust.Allowed(n.Role, trust.WriteAny) && trust.Allowed(n.Role, trust.ReadAuthority) {
		return nil
	}
	p := &server.Permissions{
		Publish:   &server.SubjectPermission{Deny: []string{">"}},
		Subscribe: &server.SubjectPermission{Deny: []string{">"}},
	}
	if trust.Allowed(n.Role, trust.ReadTables) && trust.Allowed(n.Role, trust.WriteOwn) {
		p.Publish = &server.SubjectPermission{Allow: []string{requests(n.Home, ">")}}
		p.Subscribe = &server.SubjectPermission{Allow: []string{answers(n.Home) + ".>", feedOf("*")}}
	}
	return p
}
