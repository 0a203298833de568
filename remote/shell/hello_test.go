package shell

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/remote"
)

func TestHelloRoundTrip(t *testing.T) {
	want := hello{versions: Versions{Max: 7, Min: 3}, cluster: "a cluster", Hello: remote.Hello{From: remote.Life{Home: 1 << 26, Epoch: 9}, To: 4, Knows: 1 << 60, Got: 12}}
	b := want.encode()
	got, err := decodeHello(append(b, "of a later version"...))
	if err != nil || got != want {
		t.Errorf("%+v, %v", got, err)
	}
	for n := range len(b) {
		if _, err := decodeHello(b[:n]); !errors.Is(err, errs.ErrProtocol) {
			t.Errorf("the first %d bytes: %v", n, err)
		}
	}
}

// What does not match is refused, and each side names both values.
func TestMismatches(t *testing.T) {
	for _, c := range []struct {
		name, cluster string
		versions      Versions
		err           error
		both          []string
	}{
		{"cluster", "blue", ours, ErrCluster, []string{"blue", "test"}},
		{"versions", "test", Versions{Max: 9, Min: 8}, errs.ErrVersion, []string{"8 to 9", "2 to 3"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			onEach(t, func(t *testing.T, nw network) {
				a, b := start(t, nw, 1, 1, func(cfg *Config) { cfg.Cluster, cfg.Versions = c.cluster, c.versions }), start(t, nw, 2, 1)
				a.sendAll(2, 0, 1)
				s := a.awaitPeer(2, func(s Status) bool { return errors.Is(s.Err, ErrRefused) })
				for side, text := range map[string]string{"dialer": s.Err.Error(), "other": b.log.String()} {
					for _, want := range append(c.both, c.err.Error()) {
						if !strings.Contains(text, want) {
							t.Errorf("the %s says %q, without %s", side, text, want)
						}
					}
				}
				if len(b.Peers()) > 0 {
					t.Errorf("%+v", b.Peers())
				}
			})
		})
	}
}

// Nodes of two releases agree on the lower version.
func TestNodesAgreeOnAVersion(t *testing.T) {
	onEach(t, func(t *testing.T, nw network) {
		a := start(t, nw, 1, 1)
		b := start(t, nw, 2, 1, func(c *Config) { c.Versions = Versions{Max: 2, Min: 1} })
		if v := a.Agreed(2); v != 0 {
			t.Errorf("before they have met it is %d", v)
		}
		talk(a, b, 0, 1)
		b.awaitMessages(1)
		if x, y := a.Agreed(2), b.Agreed(1); x != 2 || y != 2 {
			t.Errorf("they agree on %d and %d", x, y)
		}
	})
}

// A certificate must name the home that its node says it is.
func TestCertificatesNameHomes(t *testing.T) {
	t.Run("of who is dialed", func(t *testing.T) {
		nw := newTCPNetwork()
		a := start(t, nw, 1, 1)
		b := start(t, certified{nw, 3}, 2, 1)
		a.sendAll(2, 0, 1)
		s := a.awaitPeer(2, func(s Status) bool { return errors.Is(s.Err, remote.ErrOtherNode) })
		if !strings.Contains(s.Err.Error(), "node-3") || !strings.Contains(s.Err.Error(), "node-2") {
			t.Error(s.Err)
		}
		if len(b.Peers()) > 0 {
			t.Errorf("%+v", b.Peers())
		}
	})
	t.Run("of who dials", func(t *testing.T) {
		nw := newTCPNetwork()
		a := start(t, certified{nw, 3}, 1, 1)
		b := start(t, nw, 2, 1)
		a.sendAll(2, 0, 1)
		s := a.awaitPeer(2, func(s Status) bool { return errors.Is(s.Err, ErrRefused) })
		if want := "a certificate of [node-3 any-node], not of node-1"; !strings.Contains(s.Err.Error(), want) || !strings.Contains(b.log.String(), want) {
			t.Errorf("%v\n%s", s.Err, b.log)
		}
		if len(b.Peers()) > 0 {
			t.Errorf("%+v", b.Peers())
		}
	})
}

// certified is a network whose nodes have the certificate of another.
type certified struct {
	*tcpNetwork
	as ids.Home
}

func (c certified) listen(t testing.TB, home ids.Home) Transport { return c.listenAs(t, home, c.as) }

// A connection on which something malformed comes, or half a frame, ends with an error that says so; the node goes on.
func TestMalformed(t *testing.T) {
	for _, c := range []struct {
		name, says string
		after      []byte // the hello
	}{
		{"kind", "kind 9", []byte{0, 0, 0, 0, 9}},
		{"size", "2147483648 bytes, the limit is", []byte{0, 0, 0, 128, kindMessage}},
		{"half a frame", "7 bytes into a frame", []byte{9, 0, 0, 0, kindMessage, 1, 2}},
		{"an ack without a number", "has 3 bytes", []byte{3, 0, 0, 0, kindAck, 1, 2, 3}},
		{"a second hello", "second hello", []byte{0, 0, 0, 0, kindHello}},
		{"an ack of what was not sent", "last one sent is 0", []byte{8, 0, 0, 0, kindAck, 1, 0, 0, 0, 0, 0, 0, 0}},
		{"a gap", "left out", []byte{9, 0, 0, 0, kindMessage, 2, 0, 0, 0, 0, 0, 0, 0, 'x'}},
	} {
		t.Run(c.name, func(t *testing.T) {
			nw := memoryNetwork{NewMemory()}
			a := start(t, nw, 1, 1)
			tr := nw.listen(t, 2)
			defer tr.Close()
			conn := greet(t, tr, hello{versions: ours, cluster: "test", Hello: remote.Hello{From: remote.Life{Home: 2, Epoch: 1}, To: 1}})
			defer conn.Close()
			if _, err := conn.Write(c.after); err != nil {
				t.Fatal(err)
			}
			if c.name == "half a frame" {
				nw.HalfClose(name(2), name(1))
			}
			d := awaitNotice(a, func(remote.Down) bool { return true })
			if !strings.Contains(d.Err.Error(), c.says) || !errors.Is(d.Err, errs.ErrProtocol) && !errors.Is(d.Err, remote.ErrGap) {
				t.Errorf("%v, want one that says %q", d.Err, c.says)
			}
			if _, err := io.Copy(io.Discard, conn); err != nil {
				t.Error(err)
			}
		})
	}
}

// greet makes a connection to node 1, as a node that is none.
func greet(t *testing.T, tr Transport, g hello) Conn {
	t.Helper()
	conn, err := tr.Dial(context.Background(), name(1))
	if err != nil {
		t.Fatal(err)
	}
	f := frame{kind: kindHello, body: g.encode()}
	if _, err := conn.Write(append(f.appendHead(nil), f.body...)); err != nil {
		t.Fatal(err)
	}
	return conn
}

// A connection that does not begin with a hello is closed.
func TestStrangers(t *testing.T) {
	nw := memoryNetwork{NewMemory()}
	a := start(t, nw, 1, 1, func(c *Config) { c.Core.Handshake = 30 * time.Millisecond })
	tr := nw.listen(t, 2)
	defer tr.Close()
	for _, says := range []string{"GET / HTTP/1.1\r\n\r\n", "\x00\x00\x00\x00\x03", ""} {
		conn, err := tr.Dial(t.Context(), name(1))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Write([]byte(says)); err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, conn); err != nil {
			t.Error(err)
		}
		conn.Close()
	}
	other := greet(t, tr, hello{versions: ours, cluster: "test", Hello: remote.Hello{From: remote.Life{Home: 2, Epoch: 1}, To: 7}})
	defer other.Close()
	if _, err := io.Copy(io.Discard, other); err != nil {
		t.Error(err)
	}
	if log := a.log.String(); len(a.Peers()) > 0 || !strings.Contains(log, "looks for node 7, this is node 1") {
		t.Errorf("%+v\n%s", a.Peers(), log)
	}
}
