package credentials_test

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/internal/testkit"
	"mobula/internal/trust"
	"mobula/internal/trust/credentials"
	"mobula/internal/trust/trusttest"
)

const day = 24 * time.Hour

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// pair is a TCP connection of this machine.
func pair(t testing.TB) (dialed, accepted net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer l.Close()
	dialed, err = net.Dial("tcp", l.Addr().String())
	must(t, err)
	accepted, err = l.Accept()
	must(t, err)
	for _, c := range []net.Conn{dialed, accepted} {
		must(t, c.SetDeadline(time.Now().Add(testkit.Patience())))
		t.Cleanup(func() { _ = c.Close() })
	}
	return dialed, accepted
}

// shake makes a connection and sends a byte each way: in TLS 1.3 the side that dials learns with its first read whether it was let in.
func shake(t testing.TB, dials, accepts *tls.Config) (client, server *tls.Conn, clientErr, serverErr error) {
	t.Helper()
	dialed, accepted := pair(t)
	client, server = tls.Client(dialed, dials), tls.Server(accepted, accepts)
	talk := func(c *tls.Conn) error {
		if err := c.HandshakeContext(t.Context()); err != nil {
			_ = c.Close()
			return err
		}
		if _, err := c.Write([]byte{1}); err != nil {
			return err
		}
		_, err := io.ReadFull(c, make([]byte, 1))
		return err
	}
	var both sync.WaitGroup
	both.Go(func() { clientErr = talk(client) })
	both.Go(func() { serverErr = talk(server) })
	both.Wait()
	return client, server, clientErr, serverErr
}

func TestNodesKnowEachOther(t *testing.T) {
	c := trusttest.NewCluster(t)
	a, b := c.Live(t, trust.Data, 1, 1), c.Live(t, trust.ControlPlane, 2, 1)
	client, server, errA, errB := shake(t, a.Config(credentials.Peer{May: trust.Talk, Home: new(ids.Home(2))}), b.Config(credentials.Peer{May: trust.Talk}))
	must(t, errors.Join(errA, errB))
	if h, err := credentials.HomeOf(client.ConnectionState()); err != nil || h != 2 {
		t.Errorf("at the other end is %v, %v", h, err)
	}
	if h, err := credentials.HomeOf(server.ConnectionState()); err != nil || h != 1 {
		t.Errorf("at the other end is %v, %v", h, err)
	}
	if v := client.ConnectionState().Version; v != tls.VersionTLS13 {
		t.Errorf("version %x", v)
	}
	if _, err := credentials.HomeOf(tls.ConnectionState{}); !errors.Is(err, trust.ErrCertificate) {
		t.Errorf("of nobody: %v", err)
	}
}

// Each is refused by the side that has to know, and never gets a byte.
func TestWhoIsRefused(t *testing.T) {
	c, foreign := trusttest.NewCluster(t), trusttest.NewCluster(t)
	expired := c.Live(t, trust.Data, 7, 1)
	c.Clock.Pass(8 * day)
	foreign.Clock.Pass(8 * day)
	revokedSerial, revokedHome := c.Live(t, trust.Data, 5, 1), c.Live(t, trust.Data, 6, 4)
	good := c.Live(t, trust.Data, 1, 1)
	server := c.Live(t, trust.ControlPlane, 2, 1)
	serial := credentials.SerialOf(leafOf(t, revokedSerial))
	list := trust.NewRevocations([]trust.Revocation{{Serial: serial, At: c.Clock.Wall()}, {Home: 6, Epoch: 4, At: c.Clock.Wall()}})
	server.Revoke(list)
	good.Revoke(list)

	talk := credentials.Peer{May: trust.Talk}
	with := func(l *credentials.Live, change func(*tls.Config)) *tls.Config {
		cfg := l.Config(talk)
		change(cfg)
		return cfg
	}
	for _, r := range []struct {
		what   string
		dials  *tls.Config
		accept *tls.Config
		server error // how the side that accepts refuses; nil: it is refused itself
		client error // how the side that dials refuses
		text   string
	}{
		{"no certificate", with(good, func(c *tls.Config) { c.GetClientCertificate = nil }), server.Config(talk), errAny, nil, "certificate"},
		{"of another cluster", foreign.Live(t, trust.Data, 1, 1).Config(talk), server.Config(talk), nil, trust.ErrAuthority, ""},
		{"to another cluster", with(foreign.Live(t, trust.Data, 1, 1), func(c *tls.Config) { c.VerifyConnection = nil }), server.Config(talk), trust.ErrAuthority, nil, ""},
		{"expired, dials", expired.Config(talk), server.Config(talk), trust.ErrExpired, nil, "set the clock"},
		{"expired, accepts", good.Config(talk), expired.Config(talk), nil, trust.ErrExpired, "set the clock"},
		{"revoked by serial number, dials", revokedSerial.Config(talk), server.Config(talk), trust.ErrRevoked, nil, "node 5"},
		{"revoked by home, dials", revokedHome.Config(talk), server.Config(talk), trust.ErrRevoked, nil, "node 6"},
		{"revoked by home, accepts", good.Config(talk), revokedHome.Config(talk), nil, trust.ErrRevoked, "node 6"},
		{"a role that may not, dials", good.Config(talk), server.Config(credentials.Peer{May: trust.CarryTables}), trust.ErrRole, nil, "may not carry the tables"},
		{"a role that may not, accepts", server.Config(credentials.Peer{May: trust.Issue}), good.Config(talk), nil, trust.ErrRole, "may not issue"},
		{"another node than the one that was dialed", good.Config(credentials.Peer{May: trust.Talk, Home: new(ids.Home(9))}), server.Config(talk), nil, trust.ErrNode, "node 9"},
		{"an older TLS", with(good, func(c *tls.Config) { c.MinVersion, c.MaxVersion = 0, tls.VersionTLS12 }), server.Config(talk), errAny, nil, "version"},
		{"a purpose that nobody named", good.Config(talk), server.Config(credentials.Peer{}), trust.ErrRole, nil, ""},
	} {
		_, _, clientErr, serverErr := shake(t, r.dials, r.accept)
		if clientErr == nil || serverErr == nil && r.client == nil {
			t.Errorf("%s: let in: %v, %v", r.what, clientErr, serverErr)
			continue
		}
		decides, want := serverErr, r.server
		if r.client != nil {
			decides, want = clientErr, r.client
		}
		if want != errAny && (!errors.Is(decides, want) || !errors.Is(decides, errs.ErrPermission)) || !strings.Contains(decides.Error(), r.text) {
			t.Errorf("%s: %v, want %v %q", r.what, decides, want, r.text)
		}
	}
	if _, _, errA, errB := shake(t, good.Config(talk), server.Config(talk)); errA != nil || errB != nil {
		t.Errorf("who is not refused: %v, %v", errA, errB)
	}
}

var errAny = errors.New("any error of crypto/tls")

// leafOf is a node's certificate, as another node sees it.
func leafOf(t testing.TB, l *credentials.Live) (leaf *x509.Certificate) {
	t.Helper()
	cert, err := l.Open().GetCertificate(nil)
	must(t, err)
	return cert.Leaf
}

// A certificate of the next life counts where the home was revoked up to the one before.
func TestANodeIsLetInAgain(t *testing.T) {
	c := trusttest.NewCluster(t)
	server := c.Live(t, trust.ControlPlane, 2, 1)
	server.Revoke(trust.NewRevocations([]trust.Revocation{{Home: 6, Epoch: 4}}))
	talk := credentials.Peer{May: trust.Talk}
	_, _, errA, errB := shake(t, c.Live(t, trust.Data, 6, 5).Config(talk), server.Config(talk))
	must(t, errors.Join(errA, errB))
}

// A clock that is set back revives no certificate that had expired when the node's own was issued, and shuts nobody out. One that is set ahead
// refuses until it is right again.
func TestCertificatesAndAClockThatIsSet(t *testing.T) {
	c := trusttest.NewCluster(t)
	old := c.Live(t, trust.Data, 1, 1)
	c.Clock.Pass(8 * day)
	other := c.Live(t, trust.Data, 2, 1)
	clock := trusttest.NewClock() // of one machine
	clock.Set(8 * day)
	mine, err := credentials.NewLive(c.Node(t, trust.Data, 3, 1), clock.Wall)
	must(t, err)
	talk := credentials.Peer{May: trust.Talk}
	meets := func(when string, l *credentials.Live, want error) {
		t.Helper()
		if _, _, err, _ := shake(t, mine.Config(talk), l.Config(talk)); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", when, err, want)
		}
	}
	meets("now", other, nil)
	meets("now, one that has expired", old, trust.ErrExpired)
	clock.Set(-8 * day)
	meets("set back to when the other had not expired", old, trust.ErrExpired)
	meets("set back", other, nil)
	clock.Set(-20 * 365 * day)
	meets("set back to before the authority was made", other, nil)
	clock.Set(20*365*day + 38*day)
	meets("set ahead", other, trust.ErrExpired)
	clock.Set(-30 * day)
	meets("right again", other, nil)
}

// Credentials are replaced, and the authority is rotated, while nodes connect: no handshake fails, and the next one shows the new certificate.
func TestCredentialsAreReplacedUnderLoad(t *testing.T) {
	c := trusttest.NewCluster(t)
	a, b := c.Live(t, trust.Data, 1, 1), c.Live(t, trust.Data, 2, 1)
	talk := credentials.Peer{May: trust.Talk}
	dials, accepts := a.Config(talk), b.Config(talk) // made once, as a listener or a client of NATS does
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	var mu sync.Mutex
	shown := make(map[[32]byte]int)
	for range 4 {
		all.Go(func() {
			for ctx.Err() == nil {
				client, server, errA, errB := shake(t, dials, accepts)
				if errA != nil || errB != nil {
					t.Errorf("refused: %v, %v", errA, errB)
					return
				}
				mu.Lock()
				shown[sha256.Sum256(client.ConnectionState().PeerCertificates[0].Raw)]++
				mu.Unlock()
				_, _ = client.Close(), server.Close()
			}
		})
	}
	const rounds = 20
	for i := range rounds {
		if i == rounds/2 {
			must(t, c.Rotate(t.Context(), 40*day))
		}
		must(t, a.Use(c.Node(t, trust.Data, 1, uint64(i+1)))) // of both one is behind, as in a rotation over many nodes
		next := c.Node(t, trust.Data, 2, uint64(i+1))
		must(t, b.Use(next))
		sum := sha256.Sum256(next.Chain[0].Raw)
		for seen := 0; seen == 0 && !t.Failed(); { // each of them is seen by somebody
			client, server, errA, errB := shake(t, dials, accepts)
			must(t, errors.Join(errA, errB))
			if sha256.Sum256(client.ConnectionState().PeerCertificates[0].Raw) != sum {
				t.Errorf("after it was replaced a handshake shows another certificate")
			}
			_, _ = client.Close(), server.Close()
			mu.Lock()
			seen = shown[sum]
			mu.Unlock()
		}
	}
	cancel()
	all.Wait()
	if len(shown) < rounds {
		t.Errorf("%d certificates were seen", len(shown))
	}
}

// A configuration that was made long ago goes by the roots of now: the old one is not trusted any more, and the new one needs no cross-signature.
func TestAConfigurationFollowsTheRoots(t *testing.T) {
	c := trusttest.NewCluster(t)
	a, b, old := c.Live(t, trust.Data, 1, 1), c.Live(t, trust.Data, 2, 1), c.Node(t, trust.Data, 3, 1)
	talk := credentials.Peer{May: trust.Talk}
	dials, accepts := a.Config(talk), b.Config(talk)
	must(t, c.Rotate(t.Context(), time.Minute))
	stale, err := credentials.NewLive(old, c.Clock.Wall)
	must(t, err)
	c.Clock.Pass(time.Minute)
	must(t, a.Use(c.Node(t, trust.Data, 1, 1)))
	must(t, b.Use(c.Node(t, trust.Data, 2, 1)))
	_, _, errA, errB := shake(t, dials, accepts)
	must(t, errors.Join(errA, errB))
	if _, _, err, _ := shake(t, dials, stale.Config(talk)); !errors.Is(err, trust.ErrAuthority) {
		t.Errorf("who accepts with the old root: %v", err)
	}
	cfg := stale.Config(talk)
	cfg.VerifyConnection = nil // it would refuse first
	if _, _, _, err := shake(t, cfg, accepts); !errors.Is(err, trust.ErrAuthority) {
		t.Errorf("who dials with the old root: %v", err)
	}
}

// On a port with several protocols anybody may join, and nobody else may do anything without a certificate.
func TestAPortWithSeveralProtocols(t *testing.T) {
	c := trusttest.NewCluster(t)
	node, server := c.Live(t, trust.Data, 1, 1), c.Live(t, trust.ControlPlane, 2, 1)
	port := server.Port(map[string]credentials.Peer{"join": {Anybody: true}, "messages": {May: trust.Talk}, "tables": {May: trust.CarryTables}})
	stranger := func() *tls.Config { return &tls.Config{InsecureSkipVerify: true} }
	for _, r := range []struct {
		what, protocol string
		dials          *tls.Config
		want           error
	}{
		{"a stranger", "join", stranger(), nil},
		{"a stranger", "messages", stranger(), trust.ErrCertificate},
		{"a stranger", "", stranger(), trust.ErrRole},
		{"a stranger", "http/1.1", stranger(), errAny},
		{"a data node", "messages", node.Config(credentials.Peer{May: trust.Talk}), nil},
		{"a data node", "tables", node.Config(credentials.Peer{May: trust.Talk}), trust.ErrRole},
		{"a control-plane server", "tables", server.Config(credentials.Peer{May: trust.Talk}), nil},
		{"a node of another cluster", "messages", trusttest.NewCluster(t).Live(t, trust.Data, 1, 1).Config(credentials.Peer{Anybody: true}), trust.ErrAuthority},
	} {
		if r.protocol != "" {
			r.dials.NextProtos = []string{r.protocol}
		}
		_, _, _, err := shake(t, r.dials, port)
		if r.want == errAny && err == nil || r.want != errAny && !errors.Is(err, r.want) {
			t.Errorf("%s for %q: %v, want %v", r.what, r.protocol, err, r.want)
		}
	}
}

func TestCredentialsOfAnotherNodeAreNotUsed(t *testing.T) {
	c := trusttest.NewCluster(t)
	a := c.Live(t, trust.Data, 1, 1)
	for what, other := range map[string]credentials.Credentials{
		"another node":    c.Node(t, trust.Data, 2, 1),
		"another cluster": trusttest.NewCluster(t).Node(t, trust.Data, 1, 1),
		"nothing":         {},
	} {
		if err := a.Use(other); !errors.Is(err, errs.ErrPermission) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if a.Name().Home != 1 || a.Name().Cluster != c.ID {
		t.Errorf("then it is %v", a.Name())
	}
}
