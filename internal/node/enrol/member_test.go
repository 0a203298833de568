package enrol

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mobula/internal/errs"
	"mobula/internal/home/register"
	"mobula/internal/home/register/registertest"
	"mobula/internal/testkit"
	"mobula/internal/trust"
	"mobula/internal/trust/authority"
	"mobula/internal/trust/join"
	"mobula/internal/trust/trusttest"
)

// homes is a register in memory.
type homes struct{ registertest.Memory }

func (h *homes) Begin(ctx context.Context, _ string, c register.Claim) (register.Row, error) {
	return h.Memory.Begin(ctx, c)
}

// cluster is a cluster with one server, which nodes reach by dial.
type cluster struct {
	*trusttest.Cluster
	server *join.Server
	told   join.Enrolment
	down   bool
}

func newCluster(t *testing.T) *cluster {
	c := &cluster{Cluster: trusttest.NewCluster(t), told: join.Enrolment{
		GossipKeys: [][]byte{[]byte("first key")}, Servers: []join.Addresses{{Address: "s:7710", GCS: "s:7712"}},
	}}
	c.server = &join.Server{
		Authority: c.Authority, Secret: c.Secret, Live: c.Live(t, trust.ControlPlane, 100, 1), Homes: new(homes),
		Enrol: func(context.Context, trust.Name) (join.Enrolment, error) { return c.told, nil },
	}
	return c
}

// dial connects to the server.
func (c *cluster) dial(ctx context.Context, _ string) (net.Conn, error) {
	if c.down {
		return nil, errors.New("nobody is there")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	go func() {
		s, err := l.Accept()
		_ = l.Close() // after the one connection, which would be reset if it were still in the queue
		if err == nil {
			_ = c.server.Serve(context.Background(), tls.Server(s, c.server.Config())) // the node's side says how it ended
		}
	}()
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", l.Addr().String())
	if err != nil {
		_ = l.Close() // nobody comes
	}
	return conn, err
}

func (c *cluster) member(t *testing.T, dir string, change func(*Config)) (*Member, error) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	cfg := Config{Dir: dir, Node: "n", Wall: c.Clock.Wall, Dial: c.dial, Listener: l.(join.Listener), Address: l.Addr().String()}
	change(&cfg)
	return Open(cfg)
}

func (c *cluster) token(t *testing.T, role trust.Role) string {
	t.Helper()
	made, err := c.Create(t.Context(), authority.Making{Role: role})
	if err != nil {
		t.Fatal(err)
	}
	return made.Text()
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// A node joins, comes back without a token, knows what it was told, and renews.
func TestANodeJoinsAndComesBack(t *testing.T) {
	c, dir := newCluster(t), t.TempDir()
	token := c.token(t, trust.Data)
	m, err := c.member(t, dir, func(cfg *Config) { cfg.Join, cfg.Token = []string{"s:7710"}, token })
	must(t, err)
	if m.In() || !m.Joins() || m.Role() != trust.Data || Entered(dir) {
		t.Fatalf("before it has joined it is in: %v, and has the role %s", m.In(), m.Role())
	}
	claim := register.Claim{Identity: "me", Life: "first"}
	row, err := m.Join(t.Context(), claim)
	must(t, err)
	if !m.In() || m.Live().Name().Home != row.Home || m.Servers()[0].GCS != "s:7712" || string(m.GossipKeys()[0]) != "first key" || !Entered(dir) {
		t.Errorf("it has joined as %v, with %v", m.Live().Name(), m.Servers())
	}
	if _, err := os.Stat(filepath.Join(dir, "cluster.secret")); err == nil {
		t.Error("a data node has the cluster's secret")
	}

	back, err := c.member(t, dir, func(*Config) {})
	must(t, err)
	if !back.In() || back.Live().Name() != m.Live().Name() || back.Servers()[0] != m.Servers()[0] {
		t.Errorf("it comes back as %v", back.Live().Name())
	}
	c.told.GossipKeys = append([][]byte{[]byte("second key")}, c.told.GossipKeys...)
	before := back.Live().Due()
	must(t, back.Renew(t.Context(), claim))
	if string(back.GossipKeys()[0]) != "second key" || back.Live().Due() < before {
		t.Errorf("after a renewal it has the keys %q", back.GossipKeys())
	}
	again, err := c.member(t, dir, func(*Config) {})
	must(t, err)
	if len(again.GossipKeys()) != 2 {
		t.Error("what it has heard is forgotten")
	}
}

// The first node founds the cluster, with the same id however often it tries; a second server gets the secret, and certifies itself.
func TestServersCertifyThemselves(t *testing.T) {
	tables, clock, dir := trusttest.NewTables(), trusttest.NewClock(), t.TempDir()
	found := func() *Member {
		m, err := Open(Config{Dir: dir, Node: "first", Wall: clock.Wall})
		must(t, err)
		return m
	}
	m := found()
	secret, err := m.Secret()
	must(t, err)
	id := m.Cluster()
	m = found() // it was killed
	if again, err := m.Secret(); err != nil || again != secret || m.Cluster() != id || m.Role() != trust.ControlPlane {
		t.Fatalf("after a kill it founds another cluster: %v", err)
	}
	a := authority.New(authority.DefaultConfig(tables, secret, clock.Wall, clock.Steady))
	must(t, m.Found(t.Context(), a, "mine", register.Row{Home: 0, Epoch: 1}))
	if name := m.Live().Name(); name != (trust.Name{Cluster: id, Role: trust.ControlPlane, Home: 0, Epoch: 1}) {
		t.Errorf("it is %v", name)
	}

	c := newCluster(t)
	token := c.token(t, trust.ControlPlane)
	second, err := c.member(t, t.TempDir(), func(cfg *Config) {
		cfg.Join, cfg.Token, cfg.Role = []string{"s"}, token, trust.ControlPlane
	})
	must(t, err)
	row, err := second.Join(t.Context(), register.Claim{Identity: "second", Life: "first"})
	must(t, err)
	if got, err := second.Secret(); err != nil || got != c.Secret {
		t.Errorf("it has another secret: %v", err)
	}
	row.Epoch++
	must(t, second.Certify(t.Context(), c.Authority, row))
	if second.Live().Name().Epoch != row.Epoch {
		t.Error("it did not certify itself")
	}
}

// What cannot be is refused before anything is sent, and what is refused is not asked again elsewhere.
func TestWhatIsRefused(t *testing.T) {
	c := newCluster(t)
	data := c.token(t, trust.Data)
	in := t.TempDir()
	m, err := c.member(t, in, func(cfg *Config) { cfg.Join, cfg.Token = []string{"s"}, data })
	must(t, err)
	_, err = m.Join(t.Context(), register.Claim{Identity: "x", Life: "1"})
	must(t, err)
	other := newCluster(t).token(t, trust.Data)
	for _, x := range []struct {
		what   string
		dir    string
		change func(*Config)
		want   string
	}{
		{"without a token", t.TempDir(), func(cfg *Config) { cfg.Join = []string{"s"} }, "a token is needed"},
		{"without an address", t.TempDir(), func(cfg *Config) { cfg.Token = data }, "no address"},
		{"half a token", t.TempDir(), func(cfg *Config) { cfg.Join, cfg.Token = []string{"s"}, "mbl1.x" }, "not complete"},
		{"into another cluster", in, func(cfg *Config) { cfg.Join, cfg.Token = []string{"s"}, other }, "the token is of another one"},
		{"in another role", in, func(cfg *Config) { cfg.Role = trust.ControlPlane }, "has the role data"},
	} {
		if _, err := c.member(t, x.dir, x.change); !errors.Is(err, errs.ErrInvalid) || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%s: %v", x.what, err)
		}
	}

	asked := 0
	wrong, err := c.member(t, t.TempDir(), func(cfg *Config) {
		cfg.Join, cfg.Token, cfg.Role = []string{"s", "t"}, data, trust.Driver
		cfg.Dial = func(ctx context.Context, a string) (net.Conn, error) { asked++; return c.dial(ctx, a) }
	})
	must(t, err)
	if _, err := wrong.Join(t.Context(), register.Claim{Identity: "y", Life: "1"}); !errors.Is(err, errs.ErrPermission) || asked != 1 {
		t.Errorf("a data node's token lets a driver in: %v, asked %d times", err, asked)
	}
	c.down = true
	if err := m.Renew(t.Context(), register.Claim{Identity: "x"}); !errors.Is(err, errs.ErrNoNode) || !strings.Contains(err.Error(), "s:7710: nobody is there") {
		t.Errorf("with no server up: %v", err)
	}
}

// A server whose machine answers nothing is passed over: the next one is asked.
func TestAServerThatIsGoneIsPassedOver(t *testing.T) {
	c := newCluster(t)
	tok, err := c.Create(t.Context(), authority.Making{Role: trust.Data})
	if err != nil {
		t.Fatal(err)
	}
	m, err := c.member(t, t.TempDir(), func(cfg *Config) {
		cfg.Join, cfg.Token, cfg.DialTime = []string{"gone:7710", "s:7710"}, tok.Text(), testkit.Patience()/100
		cfg.Dial = func(ctx context.Context, a string) (net.Conn, error) {
			if a == "gone:7710" {
				<-ctx.Done()
				return nil, ctx.Err()
			}
			return c.dial(ctx, a)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx := testkit.Within(t)
	if _, err := m.Join(ctx, register.Claim{Identity: "i", Life: "l"}); err != nil {
		t.Error(err)
	}
	m.cfg.Join = m.cfg.Join[:1]
	if _, err := m.Join(ctx, register.Claim{Identity: "i", Life: "l"}); !errors.Is(err, errs.ErrNoNode) || !strings.Contains(err.Error(), "gone:7710: no machine answers there") {
		t.Errorf("with no other server: %v", err)
	}
}
