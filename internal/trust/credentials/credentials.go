package credentials

import (
	"crypto/ed25519"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"slices"
	"time"

	"mobula/internal/ids"
	"mobula/internal/trust"
)

// errNone says that there is nothing to check.
var errNone = trust.Refuse(trust.ErrCertificate, "the other side has shown no certificate")

// Credentials are a node's key and what proves it.
type Credentials struct {
	Key   ed25519.PrivateKey
	Chain []*x509.Certificate // the node's own, then cross-signatures
	Roots []*x509.Certificate // trusted ones
}

// Name is what the node's certificate says of it.
func (c Credentials) Name() (trust.Name, error) {
	if len(c.Chain) == 0 {
		return trust.Name{}, errNone
	}
	return NameOf(c.Chain[0])
}

// Check refuses credentials that prove nothing, whatever the time is.
func (c Credentials) Check() error {
	name, err := c.Name()
	if err != nil {
		return err
	}
	if !c.Key.Public().(ed25519.PublicKey).Equal(c.Chain[0].PublicKey) {
		return trust.Refuse(trust.ErrCertificate, "the certificate of node %v is not of its key", name.Home)
	}
	return Signed(c.Chain, c.Roots)
}

// certificate is the form of crypto/tls. The roots go along: a node that joins takes from them the one that its token names.
func (c Credentials) certificate() *tls.Certificate {
	out := &tls.Certificate{PrivateKey: c.Key, Leaf: c.Chain[0]}
	for _, one := range slices.Concat(c.Chain, c.Roots) {
		out.Certificate = append(out.Certificate, one.Raw)
	}
	return out
}

// NameOf is what a certificate says of its node.
func NameOf(c *x509.Certificate) (trust.Name, error) {
	if len(c.URIs) != 1 {
		return trust.Name{}, trust.Refuse(trust.ErrCertificate, "the certificate of %.64q names no node of a cluster", c.Subject.CommonName)
	}
	return trust.ParseName(c.URIs[0].String())
}

// HomeOf is the node at the other end of a connection, whose certificate the handshake has checked.
func HomeOf(cs tls.ConnectionState) (ids.Home, error) {
	if len(cs.PeerCertificates) == 0 {
		return 0, errNone
	}
	name, err := NameOf(cs.PeerCertificates[0])
	return name.Home, err
}

// SerialOf is a certificate's serial number, as revocations have it.
func SerialOf(c *x509.Certificate) string { return c.SerialNumber.Text(16) }

// issued is when the authority signed a node's certificate, by its clock.
func issued(c *x509.Certificate) time.Time { return c.NotBefore.Add(trust.Tolerance) }

// Signed refuses a chain that none of the roots has signed, whatever the time is.
func Signed(chain, roots []*x509.Certificate) error {
	if len(chain) == 0 {
		return errNone
	}
	return verify(chain, poolOf(roots), issued(chain[0]))
}

func poolOf(roots []*x509.Certificate) *x509.CertPool {
	pool := x509.NewCertPool()
	for _, r := range roots {
		pool.AddCert(r)
	}
	return pool
}

// verify checks a chain as of a time, and says what is wrong with it. A node's certificate is for either side of a connection.
func verify(chain []*x509.Certificate, roots *x509.CertPool, now time.Time) error {
	_, err := chain[0].Verify(x509.VerifyOptions{
		Roots: roots, Intermediates: poolOf(chain[1:]), CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	})
	return refusal(chain[0], now, err)
}

// refusal says in the words of package trust what crypto/x509 found.
func refusal(c *x509.Certificate, now time.Time, err error) error {
	var invalid x509.CertificateInvalidError
	var unknown x509.UnknownAuthorityError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired && now.Before(invalid.Cert.NotBefore):
		return trust.Refuse(trust.ErrClock, "the certificate of %.64q counts from %s, and the clock here says %s: set the clock that is wrong",
			c.Subject.CommonName, trust.Stamp(invalid.Cert.NotBefore), trust.Stamp(now))
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return trust.Refuse(trust.ErrExpired, "the certificate of %.64q expired at %s, and the clock here says %s: renew it, or set the clock that is wrong",
			c.Subject.CommonName, trust.Stamp(invalid.Cert.NotAfter), trust.Stamp(now))
	case errors.As(err, &unknown):
		return trust.Refuse(trust.ErrAuthority, "the certificate of %.64q is of no authority that this node trusts: it is of another cluster",
			c.Subject.CommonName)
	}
	return trust.Refuse(trust.ErrCertificate, "the certificate of %.64q: %v", c.Subject.CommonName, err)
}
