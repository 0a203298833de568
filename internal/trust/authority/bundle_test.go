package authority_test

import (
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

	"mobula/internal/ids"
	"mobula/internal/trust"
	"mobula/internal/trust/authority"
)

// published is the bundle that lies in the tables.
func published(t *testing.T, c *cluster) (s trust.SignedBundle) {
	t.Helper()
	row, _, err := c.Read(t.Context(), authority.BundleKey)
	must(t, err)
	must(t, json.Unmarshal(row, &s))
	return s
}

// The bundle follows the tables; its number grows when it changes, and only then.
func TestABundleSaysWhatTheTablesSay(t *testing.T) {
	c, a := founded(t)
	ctx := t.Context()
	first, err := a.Publish(ctx, trust.Bundle{})
	must(t, err)
	again, err := c.server().Publish(ctx, first)
	must(t, err)
	if first.Number != 1 || again.Number != 1 || len(first.Roots) != 1 || len(first.Keys) != 1 || len(first.Revoked) != 0 {
		t.Errorf("the first bundle is %+v, then %+v", first, again)
	}
	must(t, a.RevokeNode(ctx, 3, 4, "stolen"))
	must(t, a.RotateGossip(ctx))
	second, err := a.Publish(ctx, first)
	must(t, err)
	if second.Number != 2 || len(second.Revoked) != 1 || len(second.Keys) != 2 || second.Keys[0] != first.Keys[0] || second.Stage != 1 {
		t.Errorf("the second bundle is %+v", second)
	}
	must(t, a.Rotate(ctx, time.Hour))
	third, err := a.Publish(ctx, second)
	must(t, err)
	if third.Number != 3 || len(third.Roots) != 2 || third.Roots[0] != first.Roots[0] || len(published(t, c).Signatures) != 2 {
		t.Errorf("the third bundle is %+v", third)
	}
	must(t, a.EndOverlap(ctx))
	fourth, err := a.Publish(ctx, third)
	must(t, err)
	if fourth.Number != 4 || !slices.Equal(fourth.Roots, third.Roots[1:]) || len(published(t, c).Signatures) != 1 {
		t.Errorf("the fourth bundle is %+v", fourth)
	}
	if text := c.Text(); strings.Contains(text, "PRIVATE") {
		t.Error("a key lies in the tables")
	}
}

// Tables that were put back from an old copy take nothing back: what a server follows stays revoked, under a later number.
func TestABundleOutlivesItsTables(t *testing.T) {
	c, a := founded(t)
	ctx := t.Context()
	was, err := a.Publish(ctx, trust.Bundle{})
	must(t, err)
	seen := trust.Bundle{Form: 1, Cluster: was.Cluster, Number: 41, Revoked: []trust.Revocation{{Home: 3, Epoch: 4, At: c.clock.Wall().UTC()}}}
	b, err := a.Publish(ctx, seen)
	must(t, err)
	if b.Number != 42 || len(b.Revoked) != 1 {
		t.Errorf("published is %+v", b)
	}
}

// Of what several servers revoke and publish at once nothing is lost.
func TestServersPublishAtOnce(t *testing.T) {
	c, _ := founded(t)
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			a := c.server()
			for epoch := range uint64(10) {
				if err := a.RevokeNode(t.Context(), ids.Home(10+i), epoch+1, ""); err != nil {
					t.Error(err)
				}
				if _, err := a.Publish(t.Context(), trust.Bundle{}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	b, err := published(t, c).Read()
	must(t, err)
	if len(b.Revoked) != 4 || slices.ContainsFunc(b.Revoked, func(r trust.Revocation) bool { return r.Epoch != 10 }) {
		t.Errorf("published is %+v", b)
	}
}

// A rotation goes on by stages, whoever asks for the next one, and each key is another.
func TestTheGossipsKeyIsRotated(t *testing.T) {
	c, a := founded(t)
	ctx := t.Context()
	keys := func() [][]byte {
		t.Helper()
		all, err := c.server().GossipKeys(ctx)
		must(t, err)
		return all
	}
	before := keys()
	must(t, a.StepGossip(ctx, 0, true)) // there is nothing to rotate
	if got := keys(); len(got) != 1 || !slices.Equal(got[0], before[0]) {
		t.Fatal("a key was rotated that nobody wanted rotated")
	}
	must(t, a.RotateGossip(ctx))
	during := keys()
	must(t, c.server().StepGossip(ctx, 0, true)) // another stage than it is
	must(t, a.StepGossip(ctx, 1, false))         // not all nodes have it
	if got := keys(); len(got) != 2 || !slices.Equal(got[0], before[0]) || slices.Equal(got[1], before[0]) {
		t.Fatalf("the first stage has %d keys", len(got))
	}
	must(t, a.StepGossip(ctx, 1, true))
	if got := keys(); len(got) != 2 || !slices.Equal(got[0], during[1]) {
		t.Fatalf("the second stage has %d keys", len(got))
	}
	must(t, c.server().StepGossip(ctx, 2, true))
	if got := keys(); len(got) != 1 || !slices.Equal(got[0], during[1]) {
		t.Fatalf("in the end there are %d keys", len(got))
	}
}

// A server signs by its copy of the row, without tables. Where there is no copy it says so.
func TestAServerSignsByItsCopy(t *testing.T) {
	c, a := founded(t)
	dir := t.TempDir()
	cfg := authority.DefaultConfig(nil, c.secret, c.clock.Wall, c.clock.Steady)
	if _, err := authority.FromCopy(dir, cfg); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("without a copy: %v", err)
	}
	must(t, a.Keep(t.Context(), dir))
	must(t, a.Keep(t.Context(), dir))
	path := filepath.Join(dir, "authority.json")
	st, err := os.Stat(path)
	must(t, err)
	if st.Mode().Perm() != 0o600 {
		t.Errorf("the copy has mode %v", st.Mode())
	}
	alone, err := authority.FromCopy(dir, cfg)
	must(t, err)
	issued := issue(t, alone)
	of, err := a.Cluster(t.Context())
	must(t, err)
	must(t, verify(issued.Chain, of.Roots, c.clock.Wall()))
	if err := alone.RevokeNode(t.Context(), 3, 1, ""); err == nil {
		t.Error("a copy was changed")
	}
	cfg.Secret = authority.NewSecret()
	stranger, err := authority.FromCopy(dir, cfg)
	must(t, err)
	if _, err := stranger.Cluster(t.Context()); !errors.Is(err, authority.ErrSecret) {
		t.Errorf("the copy opens with another secret: %v", err)
	}
	must(t, os.WriteFile(path, []byte("{"), 0o600))
	if _, err := authority.FromCopy(dir, cfg); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("a copy that is damaged: %v", err)
	}
}
