package join

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"net"
	"sync"
	"testing"
	"time"

	"mobula/internal/errs"
	"mobula/internal/home/register"
	"mobula/internal/home/register/registertest"
	"mobula/internal/testkit"
	"mobula/internal/trust"
	"mobula/internal/trust/authority"
	"mobula/internal/trust/credentials"
	"mobula/internal/trust/trusttest"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// homes is a register in memory, which refuses the name "taken".
type homes struct{ registertest.Memory }

func (h *homes) Begin(ctx context.Context, node string, c register.Claim) (register.Row, error) {
	if node == "taken" {
		return register.Row{}, errs.New(errs.CodeNameTaken, "another node is called %q", node)
	}
	return h.Memory.Begin(ctx, c)
}

// world is a cluster with one server that nodes join at.
type world struct {
	*trusttest.Cluster
	server *Server
	homes  *homes
}

func newWorld(t testing.TB) *world {
	t.Helper()
	w := &world{Cluster: trusttest.NewCluster(t), homes: new(homes)}
	w.server = w.serverOf(t, w.Authority)
	return w
}

// serverOf is one more server.
func (w *world) serverOf(t testing.TB, a *authority.Authority) *Server {
	t.Helper()
	return &Server{
		Authority: a, Secret: w.Secret, Live: w.Live(t, trust.ControlPlane, 100, 1), Homes: w.homes,
		Enrol: func(context.Context, trust.Name) (Enrolment, error) {
			return Enrolment{GossipKeys: [][]byte{[]byte("gossip")}, Servers: []Addresses{{Address: "10.0.0.1:7000"}}}, nil
		},
	}
}

// token makes a token, as the node that joins gets it.
func (w *world) token(t testing.TB, m authority.Making) trust.Token {
	t.Helper()
	made, err := w.Create(t.Context(), m)
	must(t, err)
	tok, err := trust.ParseToken(made.Text())
	must(t, err)
	return tok
}

// wish is that of a new node.
func wish(t testing.TB, role trust.Role) Wish {
	t.Helper()
	return wishFor(t, role, trusttest.NewKey(t))
}

// wishFor is that of a node with a key, which is where it says.
func wishFor(t testing.TB, role trust.Role, key ed25519.PrivateKey) Wish {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	stop, err := Answer(l.(Listener), key)
	must(t, err)
	t.Cleanup(func() { _, _ = stop(), l.Close() })
	return Wish{Node: "n", Address: l.Addr().String(), Role: role, Key: key, Claim: register.Claim{Identity: rand.Text(), Life: rand.Text()}}
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
	t.Cleanup(func() { _, _ = dialed.Close(), accepted.Close() })
	return dialed, accepted
}

// with runs the server's side of an exchange beside the node's, and gives what each ended with.
func with(t testing.TB, s *Server, ask func(net.Conn) (Grant, error)) (Grant, error, error) {
	t.Helper()
	dialed, accepted := pair(t)
	served := make(chan error, 1)
	go func() { served <- s.Serve(context.Background(), tls.Server(accepted, s.Config())) }()
	g, err := ask(dialed)
	_ = dialed.Close()
	return g, err, <-served
}

// ask joins.
func (w *world) ask(t testing.TB, s *Server, tok trust.Token, wish Wish) (Grant, error) {
	t.Helper()
	g, err, served := with(t, s, func(c net.Conn) (Grant, error) { return Ask(t.Context(), c, tok, wish, w.Clock.Wall) })
	if (err == nil) != (served == nil) {
		t.Errorf("the node: %v, the server: %v", err, served)
	}
	return g, err
}

// renew renews.
func (w *world) renew(t testing.TB, s *Server, live *credentials.Live, wish Wish) (Grant, error) {
	t.Helper()
	g, err, _ := with(t, s, func(c net.Conn) (Grant, error) { return Renew(t.Context(), c, live, wish, w.Clock.Wall) })
	return g, err
}

// live uses what was granted.
func (w *world) live(t testing.TB, g Grant) *credentials.Live {
	t.Helper()
	l, err := credentials.NewLive(g.Credentials, w.Clock.Wall)
	must(t, err)
	return l
}

// recorded is a connection that remembers what was written to it.
type recorded struct {
	net.Conn
	mu      sync.Mutex
	written bytes.Buffer // guarded by mu
}

func (r *recorded) Write(b []byte) (int, error) {
	r.mu.Lock()
	r.written.Write(b)
	r.mu.Unlock()
	return r.Conn.Write(b)
}

// all is what was written.
func (r *recorded) all() []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	return bytes.Clone(r.written.Bytes())
}

// meet makes a connection between two nodes, and says how each side's handshake ended.
func meet(t testing.TB, a, b *credentials.Live) error {
	t.Helper()
	dialed, accepted := pair(t)
	talk := credentials.Peer{May: trust.Talk}
	client, server := tls.Client(dialed, a.Config(talk)), tls.Server(accepted, b.Config(talk))
	for _, c := range []*tls.Conn{client, server} {
		must(t, c.SetDeadline(time.Now().Add(testkit.Patience())))
	}
	answered := make(chan error, 1)
	go func() { answered <- server.Handshake() }()
	err := client.Handshake()
	if err != nil {
		_ = dialed.Close()
	}
	return errors.Join(err, <-answered)
}
