package enrol

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"mobula/internal/errs"
	"mobula/internal/home/register"
	"mobula/internal/trust"
	"mobula/internal/trust/authority"
)

// publish gives the cluster's bundle as nodes get it.
func (c *cluster) publish(t *testing.T) (s trust.SignedBundle) {
	t.Helper()
	_, err := c.Publish(context.Background(), trust.Bundle{})
	must(t, err)
	row, _, err := c.Tables.Read(t.Context(), authority.BundleKey)
	must(t, err)
	must(t, json.Unmarshal(row, &s))
	return s
}

// joined is a data node that has joined, with what it joined by.
func (c *cluster) joined(t *testing.T) (m *Member, dir string, claim register.Claim) {
	t.Helper()
	token := c.token(t, trust.Data)
	dir, claim = t.TempDir(), register.Claim{Identity: "me", Life: "first"}
	m, err := c.member(t, dir, func(cfg *Config) { cfg.Join, cfg.Token = []string{"s:7710"}, token })
	must(t, err)
	_, err = m.Join(t.Context(), claim)
	must(t, err)
	return m, dir, claim
}

// A node takes each later bundle, and no older one: not after a restart either, and not from a stranger.
func TestBundlesGoForwardOnly(t *testing.T) {
	c := newCluster(t)
	m, dir, _ := c.joined(t)
	first := c.publish(t)
	must(t, m.Follow(first))
	must(t, m.Follow(first))
	must(t, c.RevokeNode(t.Context(), 77, 1, "stolen"))
	second := c.publish(t)
	cut := 0
	_, err := m.Live().Track(tls.ConnectionState{PeerCertificates: c.Node(t, trust.Data, 77, 1).Chain}, func(error) { cut++ })
	must(t, err)
	must(t, m.Follow(second))
	if cut != 1 {
		t.Errorf("a connection with a node that the bundle revokes was cut %d times", cut)
	}
	restarted, err := c.member(t, dir, func(*Config) {})
	must(t, err)
	for what, m := range map[string]*Member{"the node": m, "the node after a restart": restarted} {
		if b := m.Bundle(); b.Number != 2 || len(b.Revoked) != 1 {
			t.Fatalf("%s follows %+v", what, b)
		}
		if err := m.Follow(first); !errors.Is(err, trust.ErrStale) || m.Bundle().Number != 2 {
			t.Errorf("%s is given an older bundle: %v", what, err)
		}
		if _, err := m.Live().Track(tls.ConnectionState{PeerCertificates: c.Node(t, trust.Data, 77, 1).Chain}, nil); !errors.Is(err, trust.ErrRevoked) {
			t.Errorf("%s lets one in that is revoked: %v", what, err)
		}
		forged := trust.SignedBundle{Body: []byte(strings.Replace(string(second.Body), `"number":2`, `"number":9`, 1)), Signatures: second.Signatures}
		if err := m.Follow(forged); !errors.Is(err, trust.ErrAuthority) || m.Bundle().Number != 2 {
			t.Errorf("%s is given a forged bundle: %v", what, err)
		}
		if err := m.Live().Revoked(); err != nil {
			t.Errorf("%s is revoked: %v", what, err)
		}
	}
	if st, err := os.Stat(filepath.Join(dir, bundleName)); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("the file: %v, %v", st, err)
	}
	must(t, os.WriteFile(filepath.Join(dir, bundleName), []byte("{"), 0o600))
	if _, err := c.member(t, dir, func(*Config) {}); !errors.Is(err, errs.ErrInvalid) || !strings.Contains(err.Error(), bundleName) {
		t.Errorf("a damaged file: %v", err)
	}
}

// A bundle of the cluster that a directory was of before says nothing in another one.
func TestABundleOfAnotherClusterIsForgotten(t *testing.T) {
	c, other := newCluster(t), newCluster(t)
	m, dir, _ := other.joined(t)
	must(t, m.Follow(other.publish(t)))
	must(t, os.Remove(filepath.Join(dir, "credentials.pem")))
	token := c.token(t, trust.Data)
	m, err := c.member(t, dir, func(cfg *Config) { cfg.Join, cfg.Token = []string{"s:7710"}, token })
	must(t, err)
	_, err = m.Join(t.Context(), register.Claim{Identity: "me", Life: "first"})
	must(t, err)
	if b := m.Bundle(); b.Number != 0 {
		t.Errorf("it follows %+v", b)
	}
	must(t, m.Follow(c.publish(t)))
}

// A node that is on the list knows that, is not renewed, and gets in again by a token, with the next life.
func TestARevokedNode(t *testing.T) {
	c := newCluster(t)
	m, dir, claim := c.joined(t)
	name := m.Live().Name()
	must(t, c.RevokeNode(t.Context(), name.Home, name.Epoch, "stolen"))
	must(t, m.Follow(c.publish(t)))
	if err := m.Live().Revoked(); !errors.Is(err, trust.ErrRevoked) || !strings.Contains(err.Error(), "stolen") {
		t.Errorf("it does not know that it is revoked: %v", err)
	}
	if err := m.Renew(t.Context(), claim); !errors.Is(err, trust.ErrRevoked) {
		t.Errorf("it is renewed: %v", err)
	}
	token := c.token(t, trust.Data)
	back, err := c.member(t, dir, func(cfg *Config) { cfg.Join, cfg.Token = []string{"s:7710"}, token })
	must(t, err)
	claim = register.Claim{Identity: "me", Life: "second", Last: &register.Row{Home: name.Home, Identity: "me", Epoch: name.Epoch}}
	row, err := back.Join(t.Context(), claim)
	must(t, err)
	if row.Home != name.Home || row.Epoch != name.Epoch+1 || back.Live().Revoked() != nil {
		t.Errorf("it is back as %+v, %v", row, back.Live().Revoked())
	}
}

// What a bundle names and the node does not have comes with its next certificate.
func TestWhatANodeLacks(t *testing.T) {
	c := newCluster(t)
	tell := func() {
		t.Helper()
		keys, err := c.GossipKeys(t.Context())
		must(t, err)
		c.told.GossipKeys = keys
	}
	tell()
	m, _, claim := c.joined(t)
	lacks := func(roots, keys bool) {
		t.Helper()
		if r, k := m.Lacks(); r != roots || k != keys {
			t.Errorf("it lacks roots: %v, keys: %v; want %v, %v", r, k, roots, keys)
		}
	}
	lacks(false, false) // it follows none
	must(t, m.Follow(c.publish(t)))
	lacks(false, false)
	must(t, c.RotateGossip(t.Context()))
	must(t, m.Follow(c.publish(t)))
	lacks(false, true)
	must(t, c.Rotate(t.Context(), time.Hour))
	must(t, m.Follow(c.publish(t)))
	lacks(true, true)
	tell()
	must(t, m.Renew(t.Context(), claim))
	lacks(false, false)
	if roots := m.Live().Present().Roots; len(roots) != 2 || len(m.GossipKeys()) != 2 || m.Live().Present().Key != nil {
		t.Errorf("it has %d roots, %d keys", len(roots), len(m.GossipKeys()))
	}
}

// A server whose certificate has expired certifies itself without the tables; one that was revoked does not.
func TestAServerThatWasOffForLong(t *testing.T) {
	c := newCluster(t)
	token, dir := c.token(t, trust.ControlPlane), t.TempDir()
	m, err := c.member(t, dir, func(cfg *Config) { cfg.Join, cfg.Token, cfg.Role = []string{"s"}, token, trust.ControlPlane })
	must(t, err)
	row, err := m.Join(t.Context(), register.Claim{Identity: "second", Life: "first"})
	must(t, err)
	cfg := authority.DefaultConfig(nil, authority.Secret{}, c.Clock.Wall, c.Clock.Steady)
	serial := func() string { return m.Live().Present().Chain[0].SerialNumber.String() }
	was := serial()
	must(t, m.Recertify(t.Context(), cfg))
	c.Clock.Pass(20 * 24 * time.Hour)
	must(t, m.Recertify(t.Context(), cfg))
	if serial() != was {
		t.Fatal("it certifies itself before it is time, or without a copy")
	}
	must(t, c.Keep(t.Context(), dir))
	must(t, m.Recertify(t.Context(), cfg))
	if name := m.Live().Name(); serial() == was || m.Live().Due() == 0 || name.Home != row.Home || name.Epoch != row.Epoch {
		t.Errorf("then it is %v", name)
	}
	must(t, c.RevokeNode(t.Context(), row.Home, row.Epoch, ""))
	must(t, m.Follow(c.publish(t)))
	c.Clock.Pass(20 * 24 * time.Hour)
	was = serial()
	if err := m.Recertify(t.Context(), cfg); err != nil || serial() != was {
		t.Errorf("one that was revoked certifies itself: %v", err)
	}
}
