package shell

import (
	"crypto/tls"
	"encoding/json"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"mobula/gcs"
	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/internal/testkit"
	"mobula/internal/trust"
	"mobula/internal/trust/credentials"
	"mobula/internal/trust/trusttest"
)

// One line for each thing that a node without a server must not do by itself; a driver's node likewise. NATS refuses it by name.
func TestWhatANodeMayNotDo(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	s := c.server(1, nil)
	c.begin(s.GCS, 1, 2, 3)
	for home, role := range map[ids.Home]trust.Role{2: trust.Data, 3: trust.Driver} {
		nc, err := dialCluster([]string{s.clients}, c.trust.Live(t, role, home, 1), net.Dialer{}, "test")
		if err != nil {
			t.Fatal(err)
		}
		defer nc.Close()
		refused := make(chan error, 100)
		nc.SetErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { refused <- err })
		want := func(what, subject string) {
			t.Helper()
			select {
			case err := <-refused:
				if text := err.Error(); !errors.Is(err, nats.ErrPermissionViolation) || !strings.Contains(text, what+` to "`+subject+`"`) {
					t.Errorf("%s: %s to %s is refused as %v", role, what, subject, err)
				}
			case <-time.After(testkit.Patience()):
				t.Errorf("%s: %s to %s is not refused", role, what, subject)
			}
		}
		for _, subject := range []string{
			"$KV.mobula_homes.1",                            // write a row of another home
			"$KV.mobula_nodes." + home.String(),             // or its own by itself: a header of such a message can remove all rows
			"$JS.API.DIRECT.GET.KV_mobula_trust",            // read the authority's rows
			"$JS.API.STREAM.MSG.GET.KV_mobula_trust",        // in either way
			"$JS.API.STREAM.MSG.GET.KV_mobula_nodes",        // have a row sent to where another home's requests go
			"$JS.API.CONSUMER.CREATE.KV_mobula_nodes",       // likewise, by a consumer
			"$JS.API.CONSUMER.DURABLE.CREATE.KV_mobula_n.x", //
			"$JS.API.STREAM.DELETE.KV_mobula_nodes",         // remove a table
			"$JS.API.STREAM.PURGE.KV_mobula_nodes",          // or its rows
			"$JS.API.STREAM.UPDATE.KV_mobula_nodes",         // or change how they are kept
			"$JS.API.STREAM.CREATE.mine",                    // fill the servers' disks
			"$JS.API.META.LEADER.STEPDOWN",                  // disturb the set
			"$SYS.REQ.SERVER.PING",                          // ask the system account
			"$SRV.PING",                                     // have a service speak in its place
			"mobula.gcs.homes.list",                         //
			requests(1, "do"),                               // ask as another home
			answers(1) + ".x",                               // answer another home
			feedOf("identity-1"),                            // tell of changes that are none
		} {
			if err := nc.Publish(subject, []byte("{}")); err != nil {
				t.Fatal(err)
			}
			want("Publish", subject)
		}
		for _, subject := range []string{">", "*", "$SYS.>", "$KV.>", "$JS.>", "_INBOX.>", "mobula.>", "mobula.gcs.from.>", requests(home, ">"), answers(1) + ".>"} {
			sub, err := nc.SubscribeSync(subject)
			if err != nil {
				t.Fatal(err)
			}
			want("Subscription", subject)
			_ = sub.Unsubscribe() // the server does not know it
		}
	}
}

// An answer goes to its home only: a request cannot have the service write a row, or ask something, in the asker's place.
func TestAnAnswerGoesToWhoAsked(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	s := c.server(1, nil)
	c.begin(s.GCS, 1, 2)
	nc, err := dialCluster([]string{s.clients}, c.trust.Live(t, trust.Data, 2, 1), net.Dialer{}, "test")
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	read, err := json.Marshal(call{Epoch: 1, Op: opRead, Bucket: gcs.Homes, Key: "2"})
	if err != nil {
		t.Fatal(err)
	}
	for _, ask := range []string{"do", "rows.identity-1"} {
		for _, reply := range []string{"$KV.mobula_homes.1", "$KV.mobula_trust.x", requests(1, "do"), answers(1) + ".x", answers(2), answers(21) + ".x"} {
			if err := nc.PublishRequest(requests(2, ask), reply, read); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, err := nc.RequestWithContext(testkit.Within(t), requests(2, "do"), read); err != nil { // those before it have been handled
		t.Fatal(err)
	}
	testkit.Eventually(t, "all are handled", func() bool { return len(s.desk.room) == 0 })
	for _, row := range []string{"KV_mobula_homes", "KV_mobula_trust"} {
		info, err := s.tables.(*carried).js.StreamInfo(row)
		want := map[string]uint64{"KV_mobula_homes": 2}[row]
		if err != nil || info.State.LastSeq != want {
			t.Errorf("%s has %d writes, want %d (%v)", row, info.State.LastSeq, want, err)
		}
	}
}

// The service refuses rows of other homes, and whatever comes from a life that is over.
func TestTheServiceRefuses(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	s := c.server(1, nil)
	c.begin(s.GCS, 1, 2, 3)
	n := c.node(trust.Data, 2, nil)
	ctx := testkit.Within(t)
	for _, row := range []gcs.Record{gcs.NodeRecord{Home: 3, Epoch: 1}, homeRecord(3), actorOf(3, "hits")} {
		if _, err := n.Call(ctx, gcs.Put{Record: row}); !errors.Is(err, errs.ErrPermission) {
			t.Errorf("a row of %s of another home: %v", row.Bucket(), err)
		}
	}
	if _, err := n.Call(ctx, gcs.Claim{Actor: actorOf(2, "hits")}); err != nil {
		t.Error(err)
	}
	if _, err := s.Call(ctx, gcs.Fence{Life: gcs.NodeRecord{Home: 2, Epoch: 1}.Life()}); err != nil {
		t.Fatal(err)
	}
	if _, err := n.Call(ctx, gcs.Claim{Actor: actorOf(2, "misses")}); !errors.Is(err, gcs.ErrFenced) || !errors.Is(err, errs.ErrPermission) {
		t.Errorf("a name for a life that is over: %v", err)
	}
	if _, err := n.Call(ctx, gcs.Free{Namespace: "prod", Name: "hits", Actor: "a2"}); !errors.Is(err, gcs.ErrFenced) {
		t.Errorf("a name of a life that is over is freed: %v", err)
	}
}

// inProcess is a connection from within the process.
type inProcess struct {
	server.ClientAuthentication
	password string
}

func (inProcess) GetTLSConnectionState() *tls.ConnectionState { return nil }
func (c inProcess) GetOpts() *server.ClientOpts               { return &server.ClientOpts{Password: c.password} }

// Who has no certificate of the cluster, or one that does not count, gets no connection; one whose certificate is revoked is cut.
func TestWhoIsLetIn(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	s := c.server(1, nil)
	c.begin(s.GCS, 1, 2)
	n := c.node(trust.Data, 2, nil)
	handshake := func(address string, cfg *tls.Config) error {
		conn, err := tls.Dial("tcp", address, cfg)
		if err != nil {
			return err
		}
		defer conn.Close()
		_ = conn.SetDeadline(time.Now().Add(testkit.Patience()))
		_, err = conn.Read(make([]byte, 1)) // with TLS 1.3 the server's refusal comes here
		return err
	}
	stranger := trusttest.NewCluster(t).Live(t, trust.Data, 7, 1).Config(credentials.Peer{May: trust.Talk})
	stranger.VerifyConnection = nil // it lets everybody in
	role := c.trust.Live(t, trust.Data, 7, 1)
	for what, try := range map[string]func() error{
		"no certificate":              func() error { return handshake(s.clients, &tls.Config{InsecureSkipVerify: true}) },
		"another cluster":             func() error { return handshake(s.clients, stranger) },
		"a data node that would vote": func() error { return handshake(s.routes, role.Config(credentials.Peer{May: trust.CarryTables})) },
	} {
		if err := try(); err == nil || !strings.Contains(err.Error(), "remote error: tls") {
			t.Errorf("%s is not refused: %v", what, err)
		}
	}
	if err := handshake(s.clients, role.Config(credentials.Peer{May: trust.CarryTables})); err != nil {
		t.Errorf("a data node is not let in: %v", err)
	}
	plain, err := net.Dial("tcp", s.clients)
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	_ = plain.SetReadDeadline(time.Now().Add(500 * time.Millisecond))
	if k, err := plain.Read(make([]byte, 1)); k != 0 {
		t.Errorf("a stranger is told something (%v)", err)
	}
	if s.srv.door.Check(inProcess{password: "guess"}) || !s.srv.door.Check(inProcess{password: s.srv.door.password}) {
		t.Error("within the process another password is let in, or the right one is not")
	}

	s.live.Revoke(trust.NewRevocations([]trust.Revocation{{Home: 2, Epoch: 1, At: trusttest.Began}}))
	testkit.Eventually(t, "the connection is cut", func() bool { return !n.nc.IsConnected() })
	if _, err := dialCluster([]string{s.clients}, n.live, net.Dialer{}, "again"); !errors.Is(err, errs.ErrNoNode) {
		t.Errorf("a node that was revoked connects: %v", err)
	}
}

// What was admitted is forgotten when it has ended.
func TestEndedConnectionsAreForgotten(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	s := c.server(1, nil)
	live := c.trust.Live(t, trust.Data, 2, 1)
	for range 100 {
		nc, err := dialCluster([]string{s.clients}, live, net.Dialer{}, "test")
		if err != nil {
			t.Fatal(err)
		}
		nc.Close()
		testkit.Eventually(t, "the server closes it", func() bool { return s.srv.ns.NumClients() == 1 })
	}
	s.srv.door.mu.Lock()
	defer s.srv.door.mu.Unlock()
	if n := len(s.srv.door.admitted); n > 20 {
		t.Errorf("%d connections are kept", n)
	}
}
