package credentials

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"maps"
	"slices"
	"time"

	"mobula/internal/ids"
	"mobula/internal/trust"
)

// Peer is who may be at the other end of a connection.
type Peer struct {
	May     trust.Action // what the connection is for: the other's role must allow it
	Home    *ids.Home    // the node that was dialed; nil: any
	Anybody bool         // with a certificate or without: for joins
}

// Config makes a configuration for either side of a connection between nodes, which follows the credentials from then on. The caller may set
// NextProtos.
func (l *Live) Config(peer Peer) *tls.Config {
	cfg := l.Open()
	cfg.ClientAuth = tls.RequireAnyClientCert
	cfg.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return l.view.Load().certificate, nil }
	// Nodes are known by the names in their certificates, not by host names, and the roots change. So neither side has crypto/tls verify: for both
	// VerifyConnection does, which every handshake ends with.
	cfg.InsecureSkipVerify = true
	cfg.VerifyConnection = func(cs tls.ConnectionState) error { return l.check(cs, peer) }
	return cfg
}

// Port makes a configuration for a port with several protocols: who may be at the other end goes by the one that was agreed on (ALPN). Without one
// that is named here nobody may.
func (l *Live) Port(protocols map[string]Peer) *tls.Config {
	cfg := l.Open()
	cfg.NextProtos = slices.Sorted(maps.Keys(protocols))
	cfg.VerifyConnection = func(cs tls.ConnectionState) error {
		peer, ok := protocols[cs.NegotiatedProtocol]
		if !ok {
			return trust.Refuse(trust.ErrRole, "the other side asks for none of the protocols %q", slices.Sorted(maps.Keys(protocols)))
		}
		return l.check(cs, peer)
	}
	return cfg
}

// Open makes a configuration for the side that accepts nodes which join: it shows who this node is, and lets anybody connect. A certificate of the
// other side is asked for and not checked, but that it is of the other's key.
func (l *Live) Open() *tls.Config {
	return &tls.Config{
		MinVersion:             tls.VersionTLS13,
		SessionTicketsDisabled: true,
		Time:                   l.time,
		ClientAuth:             tls.RequestClientCert,
		GetCertificate:         func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return l.view.Load().certificate, nil },
	}
}

// ForToken makes a configuration for a node that has nothing but a token. The handshake succeeds only with a node that may issue certificates, by the
// authority that the token names. So nothing was sent to any other one.
func ForToken(t trust.Token, wall func() time.Time) *tls.Config {
	return &tls.Config{
		MinVersion:         tls.VersionTLS13,
		Time:               wall,
		InsecureSkipVerify: true, // what is known is the authority's hash: VerifyConnection checks it
		VerifyConnection:   func(cs tls.ConnectionState) error { return vouched(cs.PeerCertificates, t, wall()) },
	}
}

// vouched checks the chain of a server that is unknown: the authority of the token must be in it, and have signed it.
func vouched(chain []*x509.Certificate, t trust.Token, now time.Time) error {
	i := slices.IndexFunc(chain, func(c *x509.Certificate) bool { return sha256.Sum256(c.Raw) == t.Authority })
	if i < 1 {
		return trust.Refuse(trust.ErrAuthority, "%v is not of the cluster that the server belongs to, or somebody stands in between: it was not sent", t)
	}
	if err := verify(chain, poolOf(chain[i:i+1]), now); err != nil {
		return err
	}
	name, err := NameOf(chain[0])
	if err == nil && !trust.Allowed(name.Role, trust.Issue) {
		err = trust.Refuse(trust.ErrRole, "node %v has the role %s, which may not %s: the token was not sent",
			name.Home, name.Role, trust.Issue)
	}
	return err
}

// check decides about the other side.
func (l *Live) check(cs tls.ConnectionState, peer Peer) error {
	v := l.view.Load()
	switch {
	case peer.Anybody:
		return nil
	case len(cs.PeerCertificates) == 0:
		return errNone
	}
	if err := verify(cs.PeerCertificates, v.pool, l.time()); err != nil {
		return err
	}
	return v.admits(cs.PeerCertificates[0], peer)
}

// admits decides about a certificate that a root of this node's has signed.
func (v *view) admits(c *x509.Certificate, peer Peer) error {
	name, err := NameOf(c)
	switch {
	case err != nil:
		return err
	case name.Cluster != v.name.Cluster:
		return trust.Refuse(trust.ErrCluster, "the other side is node %v of cluster %s, and this is a node of cluster %s",
			name.Home, name.Cluster, v.name.Cluster)
	case peer.Home != nil && name.Home != *peer.Home:
		return trust.Refuse(trust.ErrNode, "node %v is at the end of the connection, and node %v was dialed", name.Home, *peer.Home)
	case !trust.Allowed(name.Role, peer.May):
		return trust.Refuse(trust.ErrRole, "node %v has the role %s, which may not %s", name.Home, name.Role, peer.May)
	}
	return v.revoked.Check(name, SerialOf(c))
}

// time is the wall clock's, but never before this node's own certificate was issued.
func (l *Live) time() time.Time {
	now := l.wall()
	if floor := issued(l.view.Load().Chain[0]); now.Before(floor) {
		return floor
	}
	return now
}
