package trusttest

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"testing"

	"mobula/internal/ids"
	"mobula/internal/trust"
	"mobula/internal/trust/authority"
	"mobula/internal/trust/credentials"
)

// Cluster is a cluster's authority on tables in memory.
type Cluster struct {
	*authority.Authority
	Tables *Tables
	Clock  *Clock // of all its machines
	Secret authority.Secret
	ID     string
}

// NewCluster founds a cluster.
func NewCluster(t testing.TB) *Cluster {
	t.Helper()
	c := &Cluster{Tables: NewTables(), Clock: NewClock(), Secret: authority.NewSecret()}
	c.Authority = c.Server()
	if err := c.Found(context.Background(), "test"); err != nil {
		t.Fatal(err)
	}
	of, err := c.Cluster(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	c.ID = of.ID
	return c
}

// Server is one more control-plane server's authority.
func (c *Cluster) Server() *authority.Authority {
	return authority.New(authority.DefaultConfig(c.Tables, c.Secret, c.Clock.Wall, c.Clock.Steady))
}

// Node gives credentials to a node, without a token.
func (c *Cluster) Node(t testing.TB, role trust.Role, home ids.Home, epoch uint64) credentials.Credentials {
	t.Helper()
	return c.Certify(t, role, home, epoch, NewKey(t))
}

// NewKey makes a node's key.
func NewKey(t testing.TB) ed25519.PrivateKey {
	t.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// Certify gives a certificate to a key.
func (c *Cluster) Certify(t testing.TB, role trust.Role, home ids.Home, epoch uint64, key ed25519.PrivateKey) credentials.Credentials {
	t.Helper()
	issued, err := c.Issue(context.Background(), trust.Name{Cluster: c.ID, Role: role, Home: home, Epoch: epoch}, "n"+home.String(), key.Public().(ed25519.PublicKey))
	if err != nil {
		t.Fatal(err)
	}
	return credentials.Credentials{Key: key, Chain: issued.Chain, Roots: issued.Roots}
}

// Live uses a node's credentials, by the cluster's clock.
func (c *Cluster) Live(t testing.TB, role trust.Role, home ids.Home, epoch uint64) *credentials.Live {
	t.Helper()
	l, err := credentials.NewLive(c.Node(t, role, home, epoch), c.Clock.Wall)
	if err != nil {
		t.Fatal(err)
	}
	return l
}
