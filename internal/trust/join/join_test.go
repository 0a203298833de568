package join

import (
	"context"
	"crypto/rand"
	"crypto/x509"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"mobula/internal/errs"
	"mobula/internal/home/register"
	"mobula/internal/trust"
	"mobula/internal/trust/authority"
	"mobula/internal/trust/credentials"
	"mobula/internal/trust/trusttest"
)

const day = 24 * time.Hour

// A cluster from nothing: nodes join with a token, write down what they got, start again from disk, and talk.
func TestNodesJoinAndTalk(t *testing.T) {
	w := newWorld(t)
	tok := w.token(t, authority.Making{Role: trust.Data})
	var nodes []*credentials.Live
	for i := range 2 {
		dir := credentials.InDir(t.TempDir())
		key, err := dir.NextKey()
		must(t, err)
		asked := wishFor(t, trust.Data, key)
		g, err := w.ask(t, w.server, tok, asked)
		must(t, err)
		if g.Row.Epoch != 1 || g.Row.Identity != asked.Claim.Identity || g.Secret != nil || string(g.GossipKeys[0]) != "gossip" || g.Servers[0].Address != "10.0.0.1:7000" {
			t.Errorf("node %d is given %+v", i, g.Row)
		}
		must(t, dir.Write(g.Credentials))
		kept, err := dir.Read()
		must(t, err)
		live, err := credentials.NewLive(kept, w.Clock.Wall)
		must(t, err)
		if want := (trust.Name{Cluster: w.ID, Role: trust.Data, Home: g.Row.Home, Epoch: 1}); live.Name() != want {
			t.Errorf("it is %v, want %v", live.Name(), want)
		}
		nodes = append(nodes, live)
	}
	must(t, meet(t, nodes[0], nodes[1]))
	if nodes[0].Name().Home == nodes[1].Name().Home {
		t.Error("two nodes have one home")
	}
}

// Two servers more, and the first one's disk is lost: nodes join as before, and certificates of both count.
func TestTheFirstServerIsLost(t *testing.T) {
	w := newWorld(t)
	old, err := w.ask(t, w.server, w.token(t, authority.Making{Role: trust.Data}), wish(t, trust.Data))
	must(t, err)
	g, err := w.ask(t, w.server, w.token(t, authority.Making{Role: trust.ControlPlane, Once: true}), wish(t, trust.ControlPlane))
	must(t, err)
	if g.Secret == nil || *g.Secret != w.Secret {
		t.Fatal("a control-plane server gets another secret")
	}
	dir := t.TempDir()
	must(t, g.Secret.Write(dir))
	secret, err := authority.ReadSecret(dir)
	must(t, err)
	second := &Server{
		Authority: authority.New(authority.DefaultConfig(w.Tables, secret, w.Clock.Wall, w.Clock.Steady)), Secret: secret, Live: w.live(t, g), Homes: w.homes, Enrol: w.server.Enrol,
	}
	w.server = nil
	tok, err := second.Authority.Create(t.Context(), authority.Making{Role: trust.Data})
	must(t, err)
	next, err := w.ask(t, second, tok, wish(t, trust.Data))
	must(t, err)
	must(t, meet(t, w.live(t, old), w.live(t, next)))
}

func TestWhoIsNotLetIn(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	data := w.token(t, authority.Making{Role: trust.Data})
	expired := w.token(t, authority.Making{Role: trust.Data, Lifetime: time.Minute})
	revoked := w.token(t, authority.Making{Role: trust.Data})
	used := w.token(t, authority.Making{Role: trust.Data, Once: true})
	must(t, w.RevokeToken(ctx, revoked.ID))
	_, err := w.ask(t, w.server, used, wish(t, trust.Data))
	must(t, err)
	w.Clock.Pass(time.Minute)
	named := wish(t, trust.Data)
	named.Node = "taken"
	before := w.homes.Len()
	for _, c := range []struct {
		what  string
		token trust.Token
		wish  Wish
		want  error
		text  string
	}{
		{"a wrong secret", trust.NewToken(data.Authority, data.ID, [32]byte{7}), wish(t, trust.Data), trust.ErrNoToken, "make one"},
		{"an unknown token", trust.NewToken(data.Authority, "abc", [32]byte{7}), wish(t, trust.Data), trust.ErrNoToken, "make one"},
		{"an expired one", expired, wish(t, trust.Data), trust.ErrTokenExpired, "12:01:00"},
		{"a revoked one", revoked, wish(t, trust.Data), trust.ErrTokenRevoked, revoked.ID},
		{"one that was used", used, wish(t, trust.Data), trust.ErrTokenUsed, used.ID},
		{"another role", data, wish(t, trust.ControlPlane), trust.ErrRole, "for the role data"},
		{"no role", data, wish(t, trust.None), trust.ErrRole, "for the role data"},
		{"a name that is taken", data, named, errs.ErrNameTaken, `"taken"`},
		{"another cluster's", newWorld(t).token(t, authority.Making{Role: trust.Data}), wish(t, trust.Data), trust.ErrAuthority, "not sent"},
	} {
		if g, err := w.ask(t, w.server, c.token, c.wish); !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: %+v, %v", c.what, g.Row, err)
		}
	}
	if w.homes.Len() != before {
		t.Error("a node that was not let in has a home")
	}
}

// An answer that is lost is asked for again: with the same key and claim the same home is given, and a token for one use is enough.
func TestALostAnswer(t *testing.T) {
	w := newWorld(t)
	tok := w.token(t, authority.Making{Role: trust.Data, Once: true})
	asked := wish(t, trust.Data)
	first, err := w.ask(t, w.server, tok, asked) // nobody heard of it
	must(t, err)
	again, err := w.ask(t, w.serverOf(t, w.Server()), tok, asked)
	must(t, err)
	if again.Row != first.Row {
		t.Errorf("first %+v, then %+v", first.Row, again.Row)
	}
	asked.Key = trusttest.NewKey(t)
	if _, err := w.ask(t, w.server, tok, asked); !errors.Is(err, trust.ErrTokenUsed) {
		t.Errorf("for another key: %v", err)
	}
}

// A node renews over its certificate, into the life that it has now, also when the certificate has expired: a cluster that was off for two weeks
// starts again.
func TestACertificateIsRenewed(t *testing.T) {
	w := newWorld(t)
	asked := wish(t, trust.Data)
	g, err := w.ask(t, w.server, w.token(t, authority.Making{Role: trust.Data}), asked)
	must(t, err)
	live := w.live(t, g)
	_, err = w.homes.Begin(t.Context(), "n", register.Claim{Identity: asked.Claim.Identity, Life: "second", Last: &g.Row})
	must(t, err)
	for i, pass := range []time.Duration{5 * day, 14 * day, 30 * day} {
		w.Clock.Pass(pass)
		w.server.Live = w.Live(t, trust.ControlPlane, 100, 1) // a server certifies itself
		if err := meet(t, live, w.server.Live); (err == nil) != (pass < 7*day) {
			t.Errorf("renewal %d: before it nodes say %v", i, err)
		}
		asked.Key = trusttest.NewKey(t)
		next, err := w.renew(t, w.server, live, asked)
		must(t, err)
		if name, err := next.Name(); err != nil || name.Epoch != 2 || name.Home != g.Row.Home || next.Row.Epoch != 2 || !next.Key.Equal(asked.Key) {
			t.Errorf("renewal %d: %v, %v", i, name, err)
		}
		must(t, live.Use(next.Credentials))
		must(t, meet(t, live, w.server.Live))
	}
}

func TestWhatIsNotRenewed(t *testing.T) {
	w := newWorld(t)
	asked := wish(t, trust.Data)
	g, err := w.ask(t, w.server, w.token(t, authority.Making{Role: trust.Data}), asked)
	must(t, err)
	live := w.live(t, g)
	change := func(of Wish, change func(*Wish)) Wish { change(&of); return of }
	foreign := newWorld(t)
	lostCert := w.Node(t, trust.Data, g.Row.Home, 1)
	lost, err := credentials.NewLive(lostCert, w.Clock.Wall)
	must(t, err)
	for _, c := range []struct {
		what  string
		live  *credentials.Live
		wish  Wish
		first func()
		want  error
	}{
		{"another role", live, change(asked, func(w *Wish) { w.Role = trust.ControlPlane }), nil, trust.ErrRole},
		{"another directory", live, change(asked, func(w *Wish) { w.Claim.Identity = "another" }), nil, trust.ErrNode},
		{"a home that nobody knows", w.Live(t, trust.Data, 77, 1), asked, nil, errs.ErrNotFound},
		{"another cluster's certificate", foreign.Live(t, trust.Data, g.Row.Home, 1), asked, nil, trust.ErrAuthority},
		{"a revoked one", lost, asked, func() { must(t, w.RevokeCertificate(t.Context(), credentials.SerialOf(lostCert.Chain[0]), "lost")) }, trust.ErrRevoked},
		{"one of a revoked home", live, asked, func() { must(t, w.RevokeNode(t.Context(), g.Row.Home, g.Row.Epoch, "stolen")) }, trust.ErrRevoked},
	} {
		if c.first != nil {
			c.first()
		}
		if _, err := w.renew(t, w.server, c.live, c.wish); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.what, err, c.want)
		}
	}
	// Nor for who shows none, nor for who stands in for another cluster's node and skips its own check of the server.
	bare := func(c net.Conn) (Grant, error) {
		cfg := foreign.Live(t, trust.Data, g.Row.Home, 1).Config(credentials.Peer{})
		cfg.VerifyConnection = nil
		return exchange(t.Context(), c, cfg, "", asked, w.Clock.Wall)
	}
	if _, err, _ := with(t, w.server, bare); !errors.Is(err, trust.ErrAuthority) {
		t.Errorf("a certificate of another cluster: %v", err)
	}
	none := func(c net.Conn) (Grant, error) {
		cfg := live.Config(credentials.Peer{May: trust.Issue})
		cfg.GetClientCertificate = nil
		return exchange(t.Context(), c, cfg, "", asked, w.Clock.Wall)
	}
	if _, err, _ := with(t, w.server, none); !errors.Is(err, trust.ErrCertificate) {
		t.Errorf("no certificate: %v", err)
	}
	late := w.Live(t, trust.Data, g.Row.Home, 2)
	w.Clock.Pass(37*day + time.Second)
	w.server.Live = w.Live(t, trust.ControlPlane, 100, 1)
	if _, err := w.renew(t, w.server, late, asked); !errors.Is(err, trust.ErrExpired) {
		t.Errorf("too late: %v", err)
	}
}

// A node that was revoked is let in again with a token, once it has begun another life.
func TestANodeThatWasRevokedJoinsAgain(t *testing.T) {
	w := newWorld(t)
	tok := w.token(t, authority.Making{Role: trust.Data})
	asked := wish(t, trust.Data)
	g, err := w.ask(t, w.server, tok, asked)
	must(t, err)
	must(t, w.RevokeNode(t.Context(), g.Row.Home, g.Row.Epoch, "a test"))
	if _, err := w.ask(t, w.server, tok, asked); !errors.Is(err, trust.ErrRevoked) {
		t.Errorf("in the same life: %v", err)
	}
	asked.Claim.Life, asked.Claim.Last = "next", &g.Row
	again, err := w.ask(t, w.server, tok, asked)
	must(t, err)
	if again.Row.Home != g.Row.Home || again.Row.Epoch != g.Row.Epoch+1 {
		t.Errorf("it is %+v", again.Row)
	}
	list, err := w.Revocations(t.Context())
	must(t, err)
	w.server.Live.Revoke(list)
	if err := meet(t, w.live(t, g), w.server.Live); !errors.Is(err, trust.ErrRevoked) {
		t.Errorf("with the certificate of before: %v", err)
	}
	must(t, meet(t, w.live(t, again), w.server.Live))
}

// After a rotation tokens of the root before are good as long as it is trusted, and a node that joined before can renew.
func TestARotationAndTokens(t *testing.T) {
	w := newWorld(t)
	before := w.token(t, authority.Making{Role: trust.Data, Lifetime: 90 * day})
	asked := wish(t, trust.Data)
	g, err := w.ask(t, w.server, before, asked)
	must(t, err)
	must(t, w.Rotate(t.Context(), 40*day))
	w.server.Live = w.Live(t, trust.ControlPlane, 100, 1)
	for what, tok := range map[string]trust.Token{"before": before, "after": w.token(t, authority.Making{Role: trust.Data})} {
		next, err := w.ask(t, w.server, tok, wish(t, trust.Data))
		must(t, err)
		if len(next.Roots) != 2 {
			t.Errorf("a token of %s: %d roots", what, len(next.Roots))
		}
		must(t, meet(t, w.live(t, next), w.live(t, g)))
		must(t, meet(t, w.live(t, g), w.live(t, next)))
	}
	asked.Key = trusttest.NewKey(t)
	renewed, err := w.renew(t, w.server, w.live(t, g), asked)
	must(t, err)
	w.Clock.Pass(41 * day)
	w.server.Live = w.Live(t, trust.ControlPlane, 100, 1)
	if _, err := w.ask(t, w.server, before, wish(t, trust.Data)); !errors.Is(err, trust.ErrAuthority) {
		t.Errorf("a token of a root that is trusted no more: %v", err)
	}
	if len(renewed.Roots) != 2 {
		t.Errorf("%d roots", len(renewed.Roots))
	}
}

// Clocks of two machines that are too far apart are named, both times, and nothing is used.
func TestClocksThatAreApart(t *testing.T) {
	w := newWorld(t)
	tok := w.token(t, authority.Making{Role: trust.Data})
	for _, c := range []struct {
		off  time.Duration
		want error
	}{
		{-50 * time.Minute, nil}, {-2 * time.Hour, trust.ErrClock}, {6 * day, nil}, {8 * day, trust.ErrExpired},
	} {
		wall := func() time.Time { return w.Clock.Wall().Add(c.off) }
		_, err, _ := with(t, w.server, func(conn net.Conn) (Grant, error) { return Ask(t.Context(), conn, tok, wish(t, trust.Data), wall) })
		if !errors.Is(err, c.want) {
			t.Errorf("%v off: %v, want %v", c.off, err, c.want)
		}
		if err != nil && (!strings.Contains(err.Error(), trust.Stamp(wall())) || !strings.Contains(err.Error(), "2026-")) {
			t.Errorf("%v off: the times are not named: %v", c.off, err)
		}
	}
}

// A certificate that does not count now is not taken, though its server's does: the clock of the authority is another machine's.
func TestACertificateOfAnotherTime(t *testing.T) {
	w := newWorld(t)
	asked := wish(t, trust.Data)
	g, err := w.ask(t, w.server, w.token(t, authority.Making{Role: trust.Data}), asked)
	must(t, err)
	a := answer{Version: version, Chain: raw(g.Chain), Roots: raw(g.Roots), Row: g.Row}
	for off, want := range map[time.Duration]error{-50 * time.Minute: nil, -2 * time.Hour: trust.ErrClock, 6 * day: nil, 8 * day: trust.ErrClock} {
		if _, err := granted(a, asked, w.Clock.Wall().Add(off)); !errors.Is(err, want) {
			t.Errorf("%v off: %v, want %v", off, err, want)
		}
	}
	a.Row.Home++
	if _, err := granted(a, asked, w.Clock.Wall()); !errors.Is(err, trust.ErrRole) {
		t.Errorf("of another home: %v", err)
	}
}

// The cluster's secret goes to control-plane servers and to nobody else.
func TestWhoGetsTheSecret(t *testing.T) {
	w := newWorld(t)
	for role, want := range map[trust.Role]int{trust.ControlPlane: 32, trust.Data: 0, trust.Driver: 0} {
		asked := wish(t, role)
		csr, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, asked.Key)
		must(t, err)
		q := request{Version: version, Token: w.token(t, authority.Making{Role: role}).Text(), Request: csr, Address: asked.Address, Role: role, Claim: asked.Claim}
		a, err := w.server.answer(t.Context(), q, nil, nil)
		must(t, err)
		if len(a.Secret) != want || len(a.Chain) != 1 {
			t.Errorf("%s gets %d bytes of it", role, len(a.Secret))
		}
	}
}

// What fails in the server's own parts is not told to strangers, and lets the same token be used again.
func TestAControlPlaneThatCannotAnswer(t *testing.T) {
	w := newWorld(t)
	tok := w.token(t, authority.Making{Role: trust.Data, Once: true})
	inside := errors.New("nats: no responders at 10.1.2.3")
	asked := wish(t, trust.Data)
	fails := func(what string) {
		t.Helper()
		_, err, served := with(t, w.server, func(c net.Conn) (Grant, error) { return Ask(t.Context(), c, tok, asked, w.Clock.Wall) })
		if !errors.Is(err, errs.ErrComponentFailed) || strings.Contains(err.Error(), "10.1.2.3") || !errors.Is(served, inside) {
			t.Errorf("%s: %v, and the server's log has %v", what, err, served)
		}
	}
	w.Tables.Fault = func(string, bool) error { return inside }
	fails("before the token was taken")
	w.Tables.Fault = func(_ string, written bool) error {
		if written {
			return inside
		}
		return nil
	}
	fails("after it was")
	w.Tables.Fault = nil
	enrol := w.server.Enrol
	w.server.Enrol = func(context.Context, trust.Name) (Enrolment, error) { return Enrolment{}, inside }
	fails("at the end")
	w.server.Enrol = enrol
	_, err := w.ask(t, w.server, tok, asked)
	must(t, err)
}
