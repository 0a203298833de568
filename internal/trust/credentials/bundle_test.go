package credentials_test

import (
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"slices"
	"testing"

	"mobula/internal/trust"
	"mobula/internal/trust/authority"
	"mobula/internal/trust/credentials"
	"mobula/internal/trust/trusttest"
)

// bundleOf publishes the bundle of a cluster and gives it as nodes get it.
func bundleOf(t *testing.T, c *trusttest.Cluster) (s trust.SignedBundle) {
	t.Helper()
	_, err := c.Publish(context.Background(), trust.Bundle{})
	must(t, err)
	row, _, err := c.Tables.Read(t.Context(), authority.BundleKey)
	must(t, err)
	must(t, json.Unmarshal(row, &s))
	return s
}

// A bundle counts if a root has signed it that the node trusts, and every byte of it as it was signed.
func TestWhoseBundleIsBelieved(t *testing.T) {
	c, foreign := trusttest.NewCluster(t), trusttest.NewCluster(t)
	live := c.Live(t, trust.Data, 3, 1)
	good := bundleOf(t, c)
	b, err := live.Bundle(good)
	must(t, err)
	if b.Number != 1 || b.Cluster != c.ID {
		t.Errorf("it is read as %+v", b)
	}
	changed := func(change func(*trust.Bundle)) trust.SignedBundle {
		t.Helper()
		next := b
		change(&next)
		body, err := json.Marshal(next)
		must(t, err)
		return trust.SignedBundle{Body: body, Signatures: good.Signatures}
	}
	for what, s := range map[string]trust.SignedBundle{
		"with a later number":          changed(func(b *trust.Bundle) { b.Number = 99 }),
		"that revokes somebody":        changed(func(b *trust.Bundle) { b.Revoked = []trust.Revocation{{Home: 3, Epoch: 1}} }),
		"without a signature":          {Body: good.Body},
		"with half a signature":        {Body: good.Body, Signatures: [][]byte{good.Signatures[0][:32]}},
		"of another cluster":           bundleOf(t, foreign),
		"signed by a node":             signedBy(t, c, good),
		"signed by another cluster's":  {Body: good.Body, Signatures: bundleOf(t, foreign).Signatures},
		"signed as a certificate only": {Body: good.Body, Signatures: [][]byte{live.Present().Roots[0].Signature}},
	} {
		if _, err := live.Bundle(s); !errors.Is(err, trust.ErrAuthority) {
			t.Errorf("a bundle %s: %v", what, err)
		}
	}

	// Who knows only the root before believes the bundle of a rotation, and who knows only the next.
	must(t, c.Rotate(t.Context(), 40*day))
	later := c.Node(t, trust.Data, 4, 1)
	later.Roots = slices.Clone(later.Roots[1:])
	next, err := credentials.NewLive(later, c.Clock.Wall)
	must(t, err)
	for _, l := range []*credentials.Live{live, next} {
		if b, err := l.Bundle(bundleOf(t, c)); err != nil || b.Number != 2 || len(b.Roots) != 2 {
			t.Errorf("during a rotation: %+v, %v", b, err)
		}
	}
	must(t, c.EndOverlap(t.Context()))
	if _, err := live.Bundle(bundleOf(t, c)); !errors.Is(err, trust.ErrAuthority) {
		t.Errorf("who has missed the overlap: %v", err)
	}
}

// signedBy is the bundle, signed by the key of a node.
func signedBy(t *testing.T, c *trusttest.Cluster, s trust.SignedBundle) trust.SignedBundle {
	t.Helper()
	key := c.Node(t, trust.ControlPlane, 9, 1).Key
	s.Signatures = [][]byte{ed25519.Sign(key, s.Signed())}
	return s
}
