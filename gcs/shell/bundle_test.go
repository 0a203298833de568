package shell

import (
	"encoding/json"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"mobula/gcs"
	"mobula/internal/ids"
	"mobula/internal/testkit"
	"mobula/internal/trust"
	"mobula/internal/trust/authority"
)

// bundles collects what a node is shown.
type bundles struct {
	mu   sync.Mutex
	last uint64 // guarded by mu
}

func (b *bundles) take(s trust.SignedBundle) {
	if read, err := s.Read(); err == nil {
		b.mu.Lock()
		b.last = max(b.last, read.Number)
		b.mu.Unlock()
	}
}

func (b *bundles) has(number uint64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.last == number
}

// Each node of the cluster, one that comes later too, is shown the trust bundle and its changes, and nothing else of the authority's table.
func TestTheTrustBundleReachesEachNode(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	ctx := testkit.Within(t)
	var at [3]bundles
	s := c.server(1, func(cfg *Config) { cfg.Bundled = at[0].take })
	c.begin(s.GCS, 1, 2, 3)
	n := c.node(trust.Data, 2, func(cfg *Config) { cfg.Bundled = at[1].take })
	a := authority.New(authority.DefaultConfig(s.Trust(), c.trust.Secret, c.trust.Clock.Wall, c.trust.Clock.Steady))
	if err := a.Found(ctx, "test"); err != nil {
		t.Fatal(err)
	}
	for number := range uint64(3) {
		if err := a.RevokeNode(ctx, 77, number+1, ""); err != nil {
			t.Fatal(err)
		}
		if _, err := a.Publish(ctx, trust.Bundle{}); err != nil {
			t.Fatal(err)
		}
		for i := range 2 {
			testkit.Eventually(t, "node is shown the bundle", func() bool { return at[i].has(number + 1) })
		}
	}
	late := c.node(trust.Data, 3, func(cfg *Config) { cfg.Bundled = at[2].take })
	testkit.Eventually(t, "a node that comes later is shown the bundle", func() bool { return at[2].has(3) })

	for _, e := range []gcs.Effect{
		gcs.Read{Bucket: gcs.Bundles, Key: "authority"}, gcs.Read{Bucket: gcs.Bundles, Key: "bundle"}, gcs.Read{Bucket: "trust", Key: "authority"},
		gcs.Write{Record: gcs.BundleRecord{}, Revision: -1}, gcs.Delete{Bucket: gcs.Bundles, Key: "bundle", Revision: -1},
	} {
		if answer := n.tables.Do(ctx, e); answer.Err == nil || !strings.Contains(answer.Err.Error(), "no table") {
			t.Errorf("%+v is answered: %+v", e, answer)
		}
	}
	for _, answer := range answersTo(t, late.GCS, "$KV.mobula_trust.authority", "$JS.API.DIRECT.GET.KV_mobula_trust.$KV.mobula_trust.authority", "$JS.API.STREAM.MSG.GET.KV_mobula_trust") {
		t.Errorf("a data node is told %s", answer)
	}
}

// answersTo is what a node gets that asks NATS on subjects which are not its own.
func answersTo(t *testing.T, g *GCS, subjects ...string) (out []string) {
	t.Helper()
	ask, err := json.Marshal(map[string]string{"last_by_subj": "$KV.mobula_trust.authority"})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range subjects {
		if msg, err := g.nc.Request(s, ask, 500*time.Millisecond); err == nil {
			out = append(out, s+": "+string(msg.Data))
		}
	}
	return out
}

// A node leaves a server whose certificate counts no more, for another one.
func TestANodeLeavesARevokedServer(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	first := c.server(1, nil)
	c.server(2, nil)
	c.begin(first.GCS, 1, 2, 3)
	n := c.node(trust.Data, 3, nil)
	left := n.nc.ConnectedServerName()
	home, err := strconv.ParseUint(strings.TrimPrefix(left, "identity-"), 10, ids.HomeBits)
	if err != nil {
		t.Fatal(err)
	}
	n.live.Revoke(trust.NewRevocations([]trust.Revocation{{Home: ids.Home(home), Epoch: 1}}))
	testkit.Eventually(t, "it is connected to the other server", func() bool {
		now := n.nc.ConnectedServerName()
		return now != "" && now != left
	})
}
