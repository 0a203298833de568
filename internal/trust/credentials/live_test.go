package credentials_test

import (
	"crypto/tls"
	"errors"
	"slices"
	"testing"
	"time"

	"mobula/internal/trust"
	"mobula/internal/trust/credentials"
	"mobula/internal/trust/trusttest"
)

// state is a connection with a node, after the handshake.
func state(c credentials.Credentials) tls.ConnectionState {
	return tls.ConnectionState{PeerCertificates: slices.Concat(c.Chain, c.Roots)}
}

// A list that changes cuts the connections that it revokes, each once, and no other.
func TestARevocationCutsConnections(t *testing.T) {
	c := trusttest.NewCluster(t)
	live := c.Live(t, trust.Data, 1, 1)
	cut := make(map[string][]error)
	track := func(name string, of credentials.Credentials) func() {
		t.Helper()
		done, err := live.Track(state(of), func(err error) { cut[name] = append(cut[name], err) })
		must(t, err)
		return done
	}
	bad, good, renewed, ended := c.Node(t, trust.Data, 5, 3), c.Node(t, trust.Data, 6, 1), c.Node(t, trust.Data, 5, 4), c.Node(t, trust.Data, 5, 2)
	track("bad", bad)
	track("good", good)
	track("renewed", renewed)
	track("ended", ended)()
	live.Revoke(trust.NewRevocations([]trust.Revocation{{Home: 5, Epoch: 3}}))
	if len(cut) != 1 || len(cut["bad"]) != 1 || !errors.Is(cut["bad"][0], trust.ErrRevoked) {
		t.Errorf("cut were %v", cut)
	}
	live.Revoke(trust.NewRevocations([]trust.Revocation{{Home: 5, Epoch: 3}, {Serial: credentials.SerialOf(good.Chain[0])}}))
	if len(cut) != 2 || len(cut["bad"]) != 1 || len(cut["good"]) != 1 {
		t.Errorf("then %v", cut)
	}
	// A handshake that ended just before the list came is noticed.
	if _, err := live.Track(state(bad), func(error) { t.Error("it is cut too") }); !errors.Is(err, trust.ErrRevoked) {
		t.Errorf("of one that is revoked: %v", err)
	}
	if _, err := live.Track(tls.ConnectionState{}, nil); !errors.Is(err, trust.ErrCertificate) {
		t.Errorf("of nobody: %v", err)
	}
	live.Revoke(trust.Revocations{})
	if _, err := live.Track(state(bad), nil); err != nil {
		t.Errorf("with an empty list: %v", err)
	}
}

// When a root is trusted no more, the connections by its certificates are cut, also those whose certificates have expired meanwhile; others go on.
func TestARootThatIsTrustedNoMore(t *testing.T) {
	c := trusttest.NewCluster(t)
	live := c.Live(t, trust.Data, 1, 1)
	before := c.Node(t, trust.Data, 2, 1)
	must(t, c.Rotate(t.Context(), 40*day))
	after := c.Node(t, trust.Data, 2, 1)
	cut := make(map[string]error)
	for name, of := range map[string]credentials.Credentials{"before": before, "after": after} { // the first list of roots has one: the cross-signature counts
		_, err := live.Track(state(of), func(err error) { cut[name] = err })
		must(t, err)
	}
	must(t, live.Use(c.Node(t, trust.Data, 1, 1)))
	c.Clock.Pass(20 * day)
	must(t, live.Use(c.Node(t, trust.Data, 1, 1)))
	if len(cut) != 0 {
		t.Errorf("while both are trusted: %v", cut)
	}
	c.Clock.Pass(21 * day)
	must(t, live.Use(c.Node(t, trust.Data, 1, 1)))
	if len(cut) != 1 || !errors.Is(cut["before"], trust.ErrAuthority) {
		t.Errorf("then %v", cut)
	}
}

func TestWhenACertificateIsRenewed(t *testing.T) {
	c := trusttest.NewCluster(t)
	live := c.Live(t, trust.Data, 1, 1)
	if d := live.Due(); d != time.Hour {
		t.Errorf("a new one: %v", d)
	}
	waited := time.Duration(0)
	for d := live.Due(); d > 0; d = live.Due() {
		if d > time.Hour {
			t.Fatalf("it waits %v, and the clock may be set meanwhile", d)
		}
		c.Clock.Pass(d)
		waited += d
	}
	if life := 7 * day; waited < life*56/100-trust.Tolerance || waited > life*2/3 {
		t.Errorf("it is due after %v", waited)
	}
	c.Clock.Pass(30 * day)
	if d := live.Due(); d != 0 {
		t.Errorf("long after: %v", d)
	}
	// Nodes that join together do not renew together.
	spread := make(map[time.Duration]bool)
	for range 20 {
		l := c.Live(t, trust.Data, 1, 1)
		was := c.Clock.Wall()
		for d := l.Due(); d > 0; d = l.Due() {
			c.Clock.Pass(d)
		}
		spread[c.Clock.Wall().Sub(was)] = true
	}
	if len(spread) < 5 {
		t.Errorf("20 nodes renew at %d times", len(spread))
	}
}
