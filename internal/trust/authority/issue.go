package authority

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"fmt"
	"net/url"

	"mobula/internal/errs"
	"mobula/internal/trust"
)

// Issued is a certificate with what proves it.
type Issued struct {
	Chain []*x509.Certificate // the node's own, then cross-signatures
	Roots []*x509.Certificate // trusted ones
}

// Issue signs a certificate for a node's key. Whoever calls it has decided that the node is what the name says.
func (a *Authority) Issue(ctx context.Context, name trust.Name, node string, key ed25519.PublicKey) (Issued, error) {
	s, err := a.current(ctx)
	if err != nil {
		return Issued{}, err
	}
	if name.Cluster != s.row.Cluster || !name.Role.Known() {
		return Issued{}, errs.New(errs.CodeInvalid, "no certificate for %v from the authority of cluster %s", name, s.row.Cluster)
	}
	uri, err := url.Parse(name.String())
	if err != nil {
		return Issued{}, errs.New(errs.CodeInvalid, "no certificate for %v: %v", name, err)
	}
	now := a.cfg.Wall()
	until := now.Add(a.cfg.Lifetime)
	if until.After(s.certificate.NotAfter) {
		until = s.certificate.NotAfter
	}
	leaf, err := sign(&x509.Certificate{
		Subject:     pkix.Name{CommonName: shorten(node)},
		URIs:        []*url.URL{uri},
		NotBefore:   now.Add(-trust.Tolerance),
		NotAfter:    until,
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}, s.certificate, key, s.key)
	if err != nil {
		return Issued{}, err
	}
	return Issued{Chain: append([]*x509.Certificate{leaf}, s.crosses...), Roots: s.trusted}, nil
}

// newRoot makes a root, cross-signed by the one before; nil: it is the first.
func (a *Authority) newRoot(cluster, name string, before *signer) (trust.Root, error) {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return trust.Root{}, fmt.Errorf("make a key: %w", err)
	}
	now := a.cfg.Wall()
	template := &x509.Certificate{
		Subject:   pkix.Name{CommonName: "Mobula cluster " + shorten(name), SerialNumber: cluster, OrganizationalUnit: []string{fingerprint(public)}},
		NotBefore: now.Add(-trust.Tolerance),
		NotAfter:  now.Add(a.cfg.RootLifetime),
		KeyUsage:  x509.KeyUsageCertSign,
		IsCA:      true,
		// Below a root lies at most the cross-signature of the next one.
		MaxPathLen: 1,
	}
	certificate, err := sign(template, template, public, private)
	if err != nil {
		return trust.Root{}, err
	}
	root := trust.Root{Certificate: certificate.Raw, Until: certificate.NotAfter.UTC()}
	if root.Key, err = a.cfg.Secret.seal(cluster, certificate.Raw, private); err != nil || before == nil {
		return root, err
	}
	template.MaxPathLen, template.MaxPathLenZero = 0, true
	if template.NotAfter.After(before.certificate.NotAfter) {
		template.NotAfter = before.certificate.NotAfter
	}
	cross, err := sign(template, before.certificate, public, before.key)
	if err != nil {
		return trust.Root{}, err
	}
	root.Cross = cross.Raw
	return root, nil
}

// sign makes a certificate, with a random serial number.
func sign(template, parent *x509.Certificate, key ed25519.PublicKey, by ed25519.PrivateKey) (*x509.Certificate, error) {
	template.BasicConstraintsValid = true
	raw, err := x509.CreateCertificate(rand.Reader, template, parent, key, by)
	if err != nil {
		return nil, fmt.Errorf("sign a certificate: %w", err)
	}
	return x509.ParseCertificate(raw)
}

// Renews tells whether a node's certificate can be renewed at a time: it was valid until a while ago.
func (a *Authority) Renews(c *x509.Certificate) error {
	if now := a.cfg.Wall(); now.After(c.NotAfter.Add(a.cfg.Grace)) {
		return trust.Refuse(trust.ErrExpired, "the certificate expired at %s, and was to be renewed within %v, by the clock of the server (%s): join again with a token",
			trust.Stamp(c.NotAfter), a.cfg.Grace, trust.Stamp(now))
	}
	return nil
}

// fingerprint tells the roots of a cluster apart, whose subjects would be the same.
func fingerprint(key ed25519.PublicKey) string {
	sum := sha256.Sum256(key)
	return hex.EncodeToString(sum[:8])
}

// shorten makes a name fit for a certificate, where names have 64 bytes.
func shorten(name string) string {
	const longest = 32 // letters, and with them at most 128 bytes; nothing reads them but people
	if r := []rune(name); len(r) > longest {
		return string(r[:longest])
	}
	return name
}
