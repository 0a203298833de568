package credentials

import (
	"crypto/ed25519"
	"slices"

	"mobula/internal/trust"
)

// Bundle reads a trust bundle of this node's cluster. One that no root has signed that this node trusts is refused.
func (l *Live) Bundle(s trust.SignedBundle) (trust.Bundle, error) {
	v := l.view.Load()
	text := s.Signed()
	for _, root := range v.Roots {
		key, ok := root.PublicKey.(ed25519.PublicKey)
		if !ok || !slices.ContainsFunc(s.Signatures, func(sig []byte) bool { return ed25519.Verify(key, text, sig) }) {
			continue
		}
		b, err := s.Read()
		if err == nil && b.Cluster != v.name.Cluster {
			err = trust.Refuse(trust.ErrCluster, "the trust bundle is of cluster %s, and this is a node of cluster %s", b.Cluster, v.name.Cluster)
		}
		return b, err
	}
	return trust.Bundle{}, trust.Refuse(trust.ErrAuthority, "the trust bundle is signed by no authority that this node trusts")
}

// Revoked tells why this node's own certificate counts no more; nil: it does.
func (l *Live) Revoked() error {
	v := l.view.Load()
	return v.revoked.Check(v.name, SerialOf(v.Chain[0]))
}

// Present are the credentials in use, without their key.
func (l *Live) Present() Credentials {
	c := l.view.Load().Credentials
	c.Key = nil
	return c
}
