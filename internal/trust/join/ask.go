package join

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
	"time"

	"mobula/internal/errs"
	"mobula/internal/home/register"
	"mobula/internal/release"
	"mobula/internal/trust"
	"mobula/internal/trust/authority"
	"mobula/internal/trust/credentials"
)

// Wish is what a node asks for.
type Wish struct {
	Node    string // the name it wishes
	Cluster string // the name of the cluster that it is to join; empty: whichever the token is of
	Address string // where other nodes reach it, and Answer answers; of a node that joins
	Role    trust.Role
	Claim   register.Claim     // what its directory knows of itself
	Key     ed25519.PrivateKey // to be certified; it is on disk, so that the same can be asked again
}

// Grant is what a node gets.
type Grant struct {
	credentials.Credentials
	Row    register.Row      // of the home that it has
	Secret *authority.Secret // of a control-plane server; nil: it is none
	Enrolment
}

// Ask joins with a token, over a connection that was just made, which it closes. The token is sent only to a server that the token's authority
// vouches for.
func Ask(ctx context.Context, conn net.Conn, t trust.Token, w Wish, wall func() time.Time) (Grant, error) {
	return exchange(ctx, conn, credentials.ForToken(t, wall), t.Text(), w, wall)
}

// Renew asks for the next certificate of a node, likewise.
func Renew(ctx context.Context, conn net.Conn, live *credentials.Live, w Wish, wall func() time.Time) (Grant, error) {
	g, err := exchange(ctx, conn, live.Config(credentials.Peer{May: trust.Issue}), "", w, wall)
	if err == nil && g.Row.Home != live.Name().Home {
		return Grant{}, trust.Refuse(trust.ErrNode, "the server has given a certificate for node %v to node %v", g.Row.Home, live.Name().Home)
	}
	return g, err
}

func exchange(ctx context.Context, bare net.Conn, cfg *tls.Config, token string, w Wish, wall func() time.Time) (Grant, error) {
	cfg.NextProtos = []string{Protocol}
	conn := tls.Client(bare, cfg)
	defer func() { _ = conn.Close() }() // all was read
	ctx, end := bound(ctx, bare)
	defer end()
	csr, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: "node"}}, w.Key)
	if err != nil {
		return Grant{}, fmt.Errorf("join: %w", err)
	}
	if err := shake(ctx, conn); err != nil {
		return Grant{}, why(ctx, "join: TLS handshake", noServer(err))
	}
	if conn.ConnectionState().NegotiatedProtocol != Protocol {
		return Grant{}, fmt.Errorf("join: %w", errOtherPort)
	}
	question := request{
		Version: version, Release: release.Version, Token: token, Request: csr, Node: w.Node, Cluster: w.Cluster, Address: w.Address, Role: w.Role, Claim: w.Claim,
	}
	if err := write(conn, question); err != nil {
		return Grant{}, why(ctx, "join: ask", err)
	}
	var a answer
	if err := read(conn, &a); err != nil {
		return Grant{}, why(ctx, "join: wait for the answer", err)
	}
	if err := speaks(a.Version, a.Release); err != nil {
		return Grant{}, err
	}
	if a.Refused != nil {
		return Grant{}, fmt.Errorf("join: %w", a.Refused.err())
	}
	return granted(a, w, wall())
}

// handshakeTime bounds a handshake: a process that stands still accepts connections and says nothing, and another server may be asked instead.
const handshakeTime = 5 * time.Second

// shake makes the handshake.
func shake(ctx context.Context, conn *tls.Conn) error {
	bound, cancel := context.WithTimeout(ctx, handshakeTime)
	defer cancel()
	err := conn.HandshakeContext(bound)
	if err != nil && bound.Err() != nil && ctx.Err() == nil {
		return fmt.Errorf("something accepts connections there and has said nothing for %v", handshakeTime)
	}
	return err
}

// errOtherPort says that a node of the cluster listens for something else there.
var errOtherPort = errors.New("a control-plane server has this port for something else: nodes join at the port of its --listen, 7710 unless it was told another one")

// noServer says what answers that is no server of joins, as far as the end of the handshake tells.
func noServer(err error) error {
	var record tls.RecordHeaderError
	var other *net.OpError
	switch {
	case errors.As(err, &other) && other.Op == "remote error" && other.Err.Error() == "tls: no application protocol": // crypto/tls exports no alert
		return fmt.Errorf("a node is there that is no control-plane server, and lets nobody in: mobula list nodes shows which ones are (%w)", err)
	case errors.As(err, &record), errors.Is(err, io.EOF), errors.Is(err, syscall.ECONNRESET):
		return fmt.Errorf("what listens there is no node, or that is not the port of its --listen (%w)", err)
	}
	return err
}

// granted checks what the server gave.
func granted(a answer, w Wish, now time.Time) (g Grant, err error) {
	g = Grant{Row: a.Row, Enrolment: a.Enrolment}
	g.Key = w.Key
	if g.Chain, err = parse(a.Chain); err == nil {
		g.Roots, err = parse(a.Roots)
	}
	if err != nil {
		return Grant{}, errs.New(errs.CodeProtocol, "the server's answer has a certificate that cannot be read: %v", err)
	}
	if err := g.Check(); err != nil {
		return Grant{}, fmt.Errorf("join: %w", err)
	}
	name, err := g.Name()
	switch {
	case err != nil:
		return Grant{}, fmt.Errorf("join: %w", err)
	case name.Role != w.Role || name.Home != a.Row.Home:
		return Grant{}, trust.Refuse(trust.ErrRole, "the certificate is for node %v with the role %s, and node %v with the role %s was asked for",
			name.Home, name.Role, a.Row.Home, w.Role)
	case now.Before(g.Chain[0].NotBefore) || now.After(g.Chain[0].NotAfter):
		return Grant{}, trust.Refuse(trust.ErrClock, "the server's certificate counts from %s to %s, and the clock here says %s: set the clock that is wrong",
			trust.Stamp(g.Chain[0].NotBefore), trust.Stamp(g.Chain[0].NotAfter), trust.Stamp(now))
	}
	if w.Role != trust.ControlPlane {
		return g, nil
	}
	g.Secret = new(authority.Secret)
	if copy(g.Secret[:], a.Secret) != len(g.Secret) || len(a.Secret) != len(g.Secret) {
		return Grant{}, errs.New(errs.CodeProtocol, "the server's answer has no secret for a control-plane server")
	}
	return g, nil
}

func parse(all [][]byte) (out []*x509.Certificate, err error) {
	for _, raw := range all {
		c, err := x509.ParseCertificate(raw)
		if err != nil {
			return nil, err
		}
		out = append(out, c)
	}
	return out, nil
}
