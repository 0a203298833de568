package join

import (
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"net"

	"mobula/internal/errs"
	"mobula/internal/home/register"
	"mobula/internal/ids"
	"mobula/internal/release"
	"mobula/internal/trust"
	"mobula/internal/trust/authority"
	"mobula/internal/trust/credentials"
)

// Homes is the register of homes, as a server asks it. It may refuse a node, by its name for one.
type Homes interface {
	// Begin begins a life, by the rules of package register.
	Begin(ctx context.Context, node string, c register.Claim) (register.Row, error)

	// Row gives the row of a home.
	Row(ctx context.Context, home ids.Home) (register.Row, error)
}

// Server answers nodes that join and nodes that renew.
type Server struct {
	Authority *authority.Authority
	Secret    authority.Secret
	Live      *credentials.Live // this server's own
	Homes     Homes

	// Enrol tells what a node must know, just before it is let in.
	Enrol func(context.Context, trust.Name) (Enrolment, error)
}

// Conn is a TLS connection.
type Conn interface {
	net.Conn
	ConnectionState() tls.ConnectionState
}

// Config is for the connections that Serve gets, on a port of their own.
func (s *Server) Config() *tls.Config {
	cfg := s.Live.Open()
	cfg.NextProtos = []string{Protocol}
	return cfg
}

// Serve answers one question, over a connection on which this server shows its certificate and asks for the other's, and closes it. The error is what
// the node was refused for, or how the exchange failed.
func (s *Server) Serve(ctx context.Context, conn Conn) error {
	defer func() { _ = conn.Close() }() // all was written
	ctx, end := bound(ctx, conn)
	defer end()
	var q request
	if err := read(conn, &q); err != nil {
		return why(ctx, "join: wait for the question", err)
	}
	a, refused := s.answer(ctx, q, conn.RemoteAddr(), conn.ConnectionState().PeerCertificates)
	if refused != nil {
		a = answer{Refused: tell(refused)}
	}
	a.Version, a.Release = version, release.Version
	if err := write(conn, a); err != nil {
		return why(ctx, "join: answer", errors.Join(refused, err))
	}
	return refused
}

// answer lets a node in, or refuses.
func (s *Server) answer(ctx context.Context, q request, from net.Addr, shown []*x509.Certificate) (answer, error) {
	if err := speaks(q.Version, q.Release); err != nil {
		return answer{}, err
	}
	key, err := asked(q.Request)
	if err != nil {
		return answer{}, err
	}
	cluster, err := s.Authority.Cluster(ctx)
	if err != nil {
		return answer{}, err
	}
	name := trust.Name{Cluster: cluster.ID, Role: q.Role}
	var row register.Row
	if q.Token == "" {
		row, err = s.renewed(ctx, q, cluster, shown)
	} else {
		row, err = s.redeemed(ctx, q, from, cluster, key)
	}
	if err != nil {
		return answer{}, err
	}
	name.Home, name.Epoch = row.Home, row.Epoch
	return s.let(ctx, name, q.Node, row, key)
}

// asked reads a request for a certificate: whoever made it has the key.
func asked(request []byte) (ed25519.PublicKey, error) {
	csr, err := x509.ParseCertificateRequest(request)
	if err == nil {
		err = csr.CheckSignature()
	}
	if err != nil {
		return nil, errs.New(errs.CodeProtocol, "the request for a certificate cannot be read: %v", err)
	}
	key, ok := csr.PublicKey.(ed25519.PublicKey)
	if !ok {
		return nil, errs.New(errs.CodeProtocol, "the request for a certificate has a key of %v, not of Ed25519", csr.PublicKeyAlgorithm)
	}
	return key, nil
}

// redeemed lets a node in by its token, if others will reach it.
func (s *Server) redeemed(ctx context.Context, q request, from net.Addr, cluster authority.Cluster, key ed25519.PublicKey) (register.Row, error) {
	t, err := trust.ParseToken(q.Token)
	if err != nil {
		return register.Row{}, err
	}
	sum := sha256.Sum256(key)
	if err := s.Authority.Redeem(ctx, t, q.Role, hex.EncodeToString(sum[:])); err != nil {
		return register.Row{}, err
	}
	if q.Cluster != "" && q.Cluster != cluster.Name { // who has no token does not learn the name
		return register.Row{}, trust.Refuse(trust.ErrCluster, "the node is to join the cluster %.64q, and the token is of the cluster %q", q.Cluster, cluster.Name)
	}
	if err := checkReach(ctx, q, from, key); err != nil {
		return register.Row{}, err
	}
	return s.Homes.Begin(ctx, q.Node, q.Claim)
}

// renewed lets a node in again by the certificate that it has.
func (s *Server) renewed(ctx context.Context, q request, cluster authority.Cluster, shown []*x509.Certificate) (register.Row, error) {
	if err := credentials.Signed(shown, cluster.Roots); err != nil {
		return register.Row{}, err
	}
	was, err := credentials.NameOf(shown[0])
	switch {
	case err != nil:
		return register.Row{}, err
	case was.Cluster != cluster.ID:
		return register.Row{}, trust.Refuse(trust.ErrCluster, "the certificate is of cluster %s, and this is cluster %s", was.Cluster, cluster.ID)
	case was.Role != q.Role || !trust.Allowed(was.Role, trust.Renew):
		return register.Row{}, trust.Refuse(trust.ErrRole, "the certificate of node %v has the role %s, not %q: to have another one, join with a token",
			was.Home, was.Role, q.Role)
	}
	if err := s.Authority.Renews(shown[0]); err != nil {
		return register.Row{}, err
	}
	list, err := s.Authority.Revocations(ctx)
	if err != nil {
		return register.Row{}, err
	}
	if err := list.Check(was, credentials.SerialOf(shown[0])); err != nil {
		return register.Row{}, err
	}
	row, err := s.Homes.Row(ctx, was.Home)
	if err == nil && row.Identity != q.Claim.Identity {
		err = trust.Refuse(trust.ErrNode, "node %v has another directory now: join with a token", was.Home)
	}
	return row, err
}

// let signs the certificate of a node that is let in, and tells it what it must know.
func (s *Server) let(ctx context.Context, name trust.Name, node string, row register.Row, key ed25519.PublicKey) (answer, error) {
	list, err := s.Authority.Revocations(ctx)
	if err != nil {
		return answer{}, err
	}
	if err := list.Check(name, ""); err != nil { // it has begun no life since
		return answer{}, err
	}
	enrolment, err := s.Enrol(ctx, name)
	if err != nil {
		return answer{}, fmt.Errorf("enrol node %v: %w", name.Home, err)
	}
	issued, err := s.Authority.Issue(ctx, name, node, key)
	if err != nil {
		return answer{}, err
	}
	a := answer{Row: row, Enrolment: enrolment, Chain: raw(issued.Chain), Roots: raw(issued.Roots)}
	if name.Role == trust.ControlPlane {
		a.Secret = s.Secret[:]
	}
	return a, nil
}

func raw(all []*x509.Certificate) (out [][]byte) {
	for _, c := range all {
		out = append(out, c.Raw)
	}
	return out
}
