package authority_test

import (
	"crypto/ed25519"
	"crypto/x509"
	"testing"
	"time"

	"mobula/internal/trust"
	"mobula/internal/trust/authority"
	"mobula/internal/trust/trusttest"
)

const day = 24 * time.Hour

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// cluster is the tables of a cluster, and what its servers share.
type cluster struct {
	*trusttest.Tables
	clock  *trusttest.Clock
	secret authority.Secret
}

func newCluster() *cluster {
	return &cluster{trusttest.NewTables(), trusttest.NewClock(), authority.NewSecret()}
}

// server is one more control-plane server.
func (c *cluster) server() *authority.Authority {
	return authority.New(authority.DefaultConfig(c.Tables, c.secret, c.clock.Wall, c.clock.Steady))
}

// founded is a cluster with its first server.
func founded(t testing.TB) (*cluster, *authority.Authority) {
	t.Helper()
	c := newCluster()
	a := c.server()
	must(t, a.Found(t.Context(), "prod"))
	return c, a
}

// nodeOf is the name of a node of the authority's cluster.
func nodeOf(t testing.TB, a *authority.Authority) trust.Name {
	t.Helper()
	of, err := a.Cluster(t.Context())
	must(t, err)
	return trust.Name{Cluster: of.ID, Role: trust.Data, Home: 3, Epoch: 7}
}

func issue(t testing.TB, a *authority.Authority) authority.Issued {
	t.Helper()
	out, err := a.Issue(t.Context(), nodeOf(t, a), "n3", trusttest.NewKey(t).Public().(ed25519.PublicKey))
	must(t, err)
	return out
}

// verify checks a chain as a node does that trusts the roots.
func verify(chain, roots []*x509.Certificate, at time.Time) error {
	opts := x509.VerifyOptions{Roots: x509.NewCertPool(), Intermediates: x509.NewCertPool(), CurrentTime: at,
		KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
	for _, r := range roots {
		opts.Roots.AddCert(r)
	}
	for _, c := range chain[1:] {
		opts.Intermediates.AddCert(c)
	}
	_, err := chain[0].Verify(opts)
	return err
}
