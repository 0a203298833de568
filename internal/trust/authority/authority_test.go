package authority_test

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"mobula/internal/errs"
	"mobula/internal/trust"
	"mobula/internal/trust/authority"
	"mobula/internal/trust/trusttest"
)

// A certificate says who the node is, counts for a week, and is of no use for anything else.
func TestACertificate(t *testing.T) {
	c, a := founded(t)
	of, err := a.Cluster(t.Context())
	must(t, err)
	got := issue(t, a)
	leaf := got.Chain[0]
	if len(got.Chain) != 1 || len(got.Roots) != 1 || sha256.Sum256(got.Roots[0].Raw) != of.Hash || of.Name != "prod" {
		t.Fatalf("%d certificates, %d roots of %+v", len(got.Chain), len(got.Roots), of)
	}
	if len(leaf.URIs) != 1 || leaf.URIs[0].String() != nodeOf(t, a).String() || leaf.IsCA || leaf.Subject.CommonName != "n3" || len(leaf.DNSNames)+len(leaf.IPAddresses) > 0 {
		t.Errorf("it is of %v: %+v", leaf.URIs, leaf.Subject)
	}
	if !leaf.NotAfter.Equal(c.clock.Wall().Add(7*day)) || !leaf.NotBefore.Equal(c.clock.Wall().Add(-trust.Tolerance)) {
		t.Errorf("it counts from %v to %v", leaf.NotBefore, leaf.NotAfter)
	}
	must(t, verify(got.Chain, got.Roots, c.clock.Wall()))
	other := issue(t, a)
	if other.Chain[0].SerialNumber.Cmp(leaf.SerialNumber) == 0 || leaf.SerialNumber.BitLen() < 64 {
		t.Errorf("serial number %v", leaf.SerialNumber)
	}
	// A node's certificate makes no others.
	if err := verify(got.Chain, other.Chain[:1], c.clock.Wall()); err == nil {
		t.Error("a node's certificate is taken for an authority's")
	}
}

func TestWhatIsNotSigned(t *testing.T) {
	c, a := founded(t)
	key := trusttest.NewKey(t).Public().(ed25519.PublicKey)
	name := nodeOf(t, a)
	for what, change := range map[string]func(*trust.Name){
		"another cluster": func(n *trust.Name) { n.Cluster = "abc" },
		"a worker":        func(n *trust.Name) { n.Role = trust.None },
	} {
		other := name
		change(&other)
		if _, err := a.Issue(t.Context(), other, "n", key); !errors.Is(err, errs.ErrInvalid) {
			t.Errorf("%s: %v", what, err)
		}
	}
	c.clock.Set(-2 * time.Hour)
	if _, err := a.Issue(t.Context(), name, "n", key); !errors.Is(err, trust.ErrClock) {
		t.Errorf("before the authority was made: %v", err)
	}
	c.clock.Set(2 * time.Hour)
	// The last certificates end with the authority.
	c.clock.Pass(3647 * day)
	last := issue(t, a)
	if leaf := last.Chain[0]; leaf.NotAfter.After(last.Roots[0].NotAfter) {
		t.Errorf("it counts until %v, the authority until %v", leaf.NotAfter, last.Roots[0].NotAfter)
	}
	c.clock.Pass(4 * day)
	if _, err := a.Issue(t.Context(), name, "n", key); !errors.Is(err, trust.ErrExpired) {
		t.Errorf("after the authority has expired: %v", err)
	}
}

// Any server with the secret serves the authority; the first one, with its disk, may be gone.
func TestAnyServerServesTheAuthority(t *testing.T) {
	c, first := founded(t)
	second := c.server()
	must(t, second.Found(t.Context(), "prod")) // there is one
	must(t, verify(issue(t, second).Chain, issue(t, first).Roots, c.clock.Wall()))

	stranger := *c
	stranger.secret = authority.NewSecret()
	for what, err := range map[string]error{
		"to found":  stranger.server().Found(t.Context(), "prod"),
		"to rotate": stranger.server().Rotate(t.Context(), day),
		"to make a token": func() error {
			_, err := stranger.server().Create(t.Context(), authority.Making{Role: trust.Data})
			return err
		}(),
	} {
		if !errors.Is(err, authority.ErrSecret) {
			t.Errorf("%s without the secret: %v", what, err)
		}
	}
	if _, err := newCluster().server().Cluster(t.Context()); !errors.Is(err, authority.ErrNone) {
		t.Errorf("a cluster without an authority: %v", err)
	}
}

// Of servers that found at once one does, whoever else is killed or fails meanwhile.
func TestFoundersAtOnce(t *testing.T) {
	c := newCluster()
	founders := make([]*cluster, 8)
	results := make([]error, len(founders))
	var all sync.WaitGroup
	for i := range founders {
		other := *c
		other.secret = authority.NewSecret()
		founders[i] = &other
		all.Go(func() { results[i] = founders[i].server().Found(t.Context(), "prod") })
	}
	all.Wait()
	won := 0
	for i, err := range results {
		switch {
		case err == nil:
			won++
			must(t, founders[i].server().Found(t.Context(), "prod"))
		case !errors.Is(err, authority.ErrSecret):
			t.Errorf("founder %d: %v", i, err)
		}
	}
	if won != 1 {
		t.Errorf("%d founders", won)
	}

	// A founder whose answer was lost goes on with the secret that it had written down.
	lost := newCluster()
	errLost := errors.New("no answer")
	lost.Fault = func(string, bool) error { return errLost }
	if err := lost.server().Found(t.Context(), "prod"); !errors.Is(err, errLost) || lost.Text() != "" {
		t.Fatalf("%v, %s", err, lost.Text())
	}
	lost.Fault = func(_ string, written bool) error {
		if written {
			return errLost
		}
		return nil
	}
	if err := lost.server().Found(t.Context(), "prod"); !errors.Is(err, errLost) {
		t.Fatal(err)
	}
	before := lost.Text()
	lost.Fault = nil
	must(t, lost.server().Found(t.Context(), "prod"))
	if lost.Text() != before {
		t.Error("it has founded twice")
	}
}

// Who reads the tables finds no key that signs and no secret of a token; who changes them gets no signature for it.
func TestWhatTheTablesTell(t *testing.T) {
	c, a := founded(t)
	tok, err := a.Create(t.Context(), authority.Making{Role: trust.Data})
	must(t, err)
	_, secret, _ := strings.Cut(tok.Text(), tok.ID+".")
	text := c.Text()
	if !strings.Contains(text, tok.ID) || strings.Contains(text, secret) {
		t.Errorf("the tables have %s", text)
	}
	var row trust.AuthorityRow
	data, revision, err := c.Read(t.Context(), "authority")
	must(t, err)
	must(t, json.Unmarshal(data, &row))
	if n := len(row.Roots[0].Key); n != ed25519.SeedSize+12+16 {
		t.Errorf("the sealed key has %d bytes", n)
	}

	// The key of one authority beside the certificate of another, and a key that was changed.
	other := *c
	otherTables, _ := founded(t)
	data, _, err = otherTables.Read(t.Context(), "authority")
	must(t, err)
	var foreign trust.AuthorityRow
	must(t, json.Unmarshal(data, &foreign))
	for what, change := range map[string]func(*trust.AuthorityRow){
		"a key with a flipped bit": func(r *trust.AuthorityRow) {
			r.Roots[0].Key = append(bytes.Clone(row.Roots[0].Key[:59]), row.Roots[0].Key[59]^1)
		},
		"another certificate": func(r *trust.AuthorityRow) { r.Roots[0].Certificate = foreign.Roots[0].Certificate },
		"another cluster":     func(r *trust.AuthorityRow) { r.Cluster = foreign.Cluster },
		"no key":              func(r *trust.AuthorityRow) { r.Roots[0].Key = nil },
	} {
		changed := row
		changed.Roots = slices.Clone(row.Roots)
		change(&changed)
		data, err := json.Marshal(changed)
		must(t, err)
		must(t, other.Write(t.Context(), "authority", data, revision))
		_, revision, _ = other.Read(t.Context(), "authority")
		if _, err := other.server().Cluster(t.Context()); !errors.Is(err, authority.ErrSecret) {
			t.Errorf("%s: %v", what, err)
		}
	}
	must(t, other.Write(t.Context(), "authority", []byte("{"), revision))
	if _, err := other.server().Cluster(t.Context()); !errors.Is(err, errs.ErrInvalid) {
		t.Errorf("damage: %v", err)
	}
}

// Nodes that know one root only understand those that know the other, as long as both are trusted.
func TestARotation(t *testing.T) {
	c, a := founded(t)
	before := issue(t, a)
	must(t, c.server().Rotate(t.Context(), 40*day))
	after := issue(t, a)
	if len(after.Roots) != 2 || len(after.Chain) != 2 || !after.Roots[0].Equal(before.Roots[0]) {
		t.Fatalf("then %d roots, %d certificates", len(after.Roots), len(after.Chain))
	}
	now := c.clock.Wall()
	must(t, verify(after.Chain, before.Roots, now)) // by the cross-signature
	must(t, verify(after.Chain, after.Roots[1:], now))
	must(t, verify(before.Chain, after.Roots, now))
	if err := verify(before.Chain, after.Roots[1:], now); err == nil {
		t.Error("a certificate of the root before counts for those who trust only the next")
	}
	if err := verify(after.Chain[:1], before.Roots, now); err == nil {
		t.Error("without the cross-signature nobody can know")
	}
	if err := a.Rotate(t.Context(), day); !errors.Is(err, errs.ErrInvalid) {
		t.Errorf("a rotation during one: %v", err)
	}
	of, err := a.Cluster(t.Context())
	must(t, err)
	if of.Hash != sha256.Sum256(after.Roots[1].Raw) {
		t.Error("tokens name the root before")
	}
	c.clock.Pass(40 * day)
	later := issue(t, a)
	if len(later.Roots) != 1 || len(later.Chain) != 1 || !later.Roots[0].Equal(after.Roots[1]) {
		t.Errorf("in the end %d roots, %d certificates", len(later.Roots), len(later.Chain))
	}
	must(t, verify(later.Chain, later.Roots, c.clock.Wall()))

	// A root whose key leaked is trusted no more at once.
	must(t, a.Rotate(t.Context(), 0))
	if roots := issue(t, a).Roots; len(roots) != 1 || roots[0].Equal(later.Roots[0]) {
		t.Errorf("%d roots after a leak", len(roots))
	}
}

func TestTheSecretOnDisk(t *testing.T) {
	dir := t.TempDir()
	if _, err := authority.ReadSecret(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no secret: %v", err)
	}
	s := authority.NewSecret()
	must(t, s.Write(dir))
	if got, err := authority.ReadSecret(dir); err != nil || got != s || s == authority.NewSecret() {
		t.Errorf("it is read as another one: %v", err)
	}
	path := filepath.Join(dir, "cluster.secret")
	st, err := os.Stat(path)
	must(t, err)
	if st.Mode().Perm() != 0o600 {
		t.Errorf("its mode is %v", st.Mode())
	}
	for _, text := range []string{"", "x", hex.EncodeToString(s[:31]), hex.EncodeToString(s[:]) + "00", strings.Repeat("g", 64)} {
		must(t, os.WriteFile(path, []byte(text), 0o600))
		if _, err := authority.ReadSecret(dir); !errors.Is(err, errs.ErrInvalid) || len(text) > 10 && strings.Contains(err.Error(), text[:10]) {
			t.Errorf("%q: %v", text, err)
		}
	}
}
