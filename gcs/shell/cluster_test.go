package shell

import (
	"errors"
	"fmt"
	"path/filepath"
	"testing"

	"mobula/actors"
	"mobula/gcs"
	"mobula/internal/home/register"
	"mobula/internal/ids"
	"mobula/internal/testkit"
	"mobula/internal/trust"
	"mobula/internal/trust/credentials"
	"mobula/internal/trust/trusttest"
)

// testCluster is a cluster on the loopback interface, with TLS.
type testCluster struct {
	t     *testing.T
	trust *trusttest.Cluster
	dir   string
	nodes map[ids.Home]*testNode
}

// testNode is a node's control plane.
type testNode struct {
	*GCS
	sys     *actors.System
	live    *credentials.Live
	clients string // where a server is
	routes  string
}

func newCluster(t *testing.T) *testCluster {
	t.Helper()
	c := &testCluster{t: t, trust: trusttest.NewCluster(t), dir: t.TempDir(), nodes: make(map[ids.Home]*testNode)}
	t.Cleanup(func() {
		for h := range c.nodes {
			c.stop(h)
		}
	})
	return c
}

func freeAddress(t *testing.T) string {
	t.Helper()
	return fmt.Sprintf("127.0.0.1:%d", testkit.Ports(t, 1))
}

// server starts a server on a node. It knows all that are there.
func (c *testCluster) server(home ids.Home, change func(*Config)) *testNode {
	c.t.Helper()
	return c.serverAt(home, freeAddress(c.t), freeAddress(c.t), change)
}

// serverAt starts a server at an address, again maybe.
func (c *testCluster) serverAt(home ids.Home, clients, routes string, change func(*Config)) *testNode {
	c.t.Helper()
	n := &testNode{live: c.trust.Live(c.t, trust.ControlPlane, home, 1), clients: clients, routes: routes}
	cfg := Config{Dir: filepath.Join(c.dir, home.String()), Node: "n" + home.String(), Listen: &ListenConfig{
		Live: func() *credentials.Live { return n.live }, Cluster: "test", Identity: "identity-" + home.String(), Clients: n.clients, Routes: n.routes,
	}}
	for _, other := range c.nodes {
		if other.routes != "" {
			cfg.Listen.Others = append(cfg.Listen.Others, other.routes)
		}
	}
	c.start(home, n, cfg, change)
	return n
}

// node starts a node without a server.
func (c *testCluster) node(role trust.Role, home ids.Home, change func(*Config)) *testNode {
	c.t.Helper()
	n := &testNode{live: c.trust.Live(c.t, role, home, 1)}
	cfg := Config{Node: "n" + home.String(), Live: n.live, Epoch: 1}
	for _, other := range c.nodes {
		if other.clients != "" {
			cfg.Servers = append(cfg.Servers, other.clients)
		}
	}
	c.start(home, n, cfg, change)
	return n
}

func (c *testCluster) start(home ids.Home, n *testNode, cfg Config, change func(*Config)) {
	c.t.Helper()
	if change != nil {
		change(&cfg)
	}
	n.sys = actors.NewSystem(actors.Config{})
	g, err := Start(n.sys, cfg)
	if err != nil {
		c.t.Fatal(err)
	}
	n.GCS = g
	c.nodes[home] = n
}

func (c *testCluster) stop(home ids.Home) {
	stopTest(c.t, c.nodes[home].sys)
	delete(c.nodes, home)
}

// begin gives the homes their first lives.
func (c *testCluster) begin(g *GCS, homes ...ids.Home) {
	c.t.Helper()
	for _, h := range homes {
		r := gcs.HomeRecord{Row: register.Row{Home: h, Identity: "identity-" + h.String(), Epoch: 1, Life: "first"}}
		if _, err := g.Call(c.t.Context(), gcs.Put{Record: r}); err != nil {
			c.t.Fatal(err)
		}
	}
}

// actorOf is a named actor of a job of a home.
func actorOf(home ids.Home, name string) gcs.ActorRecord {
	rec := actor(name, "a"+home.String())
	rec.Job, rec.Epoch = ids.JobID(home)<<36+1, 1
	return rec
}

// A node of a cluster has the same tables as its servers.
func TestANodeUsesTheTablesOfItsCluster(t *testing.T) {
	c := newCluster(t)
	s := c.server(1, nil)
	c.begin(s.GCS, 1, 2)
	n := c.node(trust.Data, 2, nil)
	rec := actorOf(2, "hits")
	if _, err := n.Call(testkit.Within(t), gcs.Claim{Actor: rec}); err != nil {
		t.Fatal(err)
	}
	rows, err := s.Call(testkit.Within(t), gcs.Lookup{Bucket: gcs.Actors, Key: rec.Key()})
	if err != nil || len(rows) != 1 || rows[0] != gcs.Record(rec) {
		t.Errorf("%+v, %v", rows, err)
	}
}

// A server without most of the others says how many are missing, and where they should be.
func TestAServerWithoutMostOfTheOthers(t *testing.T) {
	c := newCluster(t)
	s := c.server(1, nil)
	why := errors.New("no answer")
	for _, x := range []struct {
		others []string
		want   string
	}{
		{nil, "no answer"}, {[]string{"10.0.0.2:7713", "10.0.0.3:7713"}, "of the cluster's 3 control-plane servers 1 are there, this one included, and it takes 2: start more of those at [10.0.0.2:7713 10.0.0.3:7713] (no answer)"},
	} {
		g := &GCS{cfg: Config{Listen: &ListenConfig{Others: x.others}}, srv: s.srv}
		if err := g.unled(why); !errors.Is(err, why) || err.Error() != x.want {
			t.Errorf("with %v: %v", x.others, err)
		}
	}
}
