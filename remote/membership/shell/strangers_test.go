package shell

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/memberlist"

	"mobula/internal/errs"
	"mobula/internal/testkit"
	"mobula/internal/trust"
	"mobula/remote/membership"
	"mobula/remote/membership/memnet"
)

func key(b byte) []byte { return bytes.Repeat([]byte{b}, 32) }

// These run over UDP and TCP of loopback.

func TestNodesMeetOverTheNetwork(t *testing.T) {
	ctx := testkit.Within(t)
	a, b, c := start(t, life(1, 1)), start(t, life(2, 1)), start(t, life(3, 7))
	b.join(ctx, a)
	c.join(ctx, b)
	a.sees(ctx, 2, 3)
	b.sees(ctx, 1, 3)
	c.sees(ctx, 1, 2)
	want := c.cfg.Core.Self
	for _, up := range told[membership.NodeUp](a) {
		if up.Node.Home == 3 && up.Node != want {
			t.Errorf("told %+v, want %+v", up.Node, want)
		}
	}
	if err := c.SetLoad(membership.Report{Version: 1, Bytes: []byte("busy")}); err != nil {
		t.Fatal(err)
	}
	a.until(ctx, "wants a load", func() bool { return len(told[membership.LoadReceived](a)) == 1 })
	if err := c.Leave(ctx); err != nil {
		t.Fatal(err)
	}
	a.until(ctx, "wants node 3 gone", func() bool { return len(told[membership.NodeLeft](a)) == 1 })
	c.kill()
	if err := c.Leave(ctx); !errors.Is(err, errs.ErrShutdown) {
		t.Errorf("leaving after the end: %v", err)
	}
	if _, err := c.Join(ctx, []string{a.Address()}); !errors.Is(err, errs.ErrShutdown) {
		t.Errorf("joining after the end: %v", err)
	}
	if _, err := c.Members(ctx); !errors.Is(err, errs.ErrShutdown) {
		t.Errorf("asking after the end: %v", err)
	}
}

// A node with another key, without one, or of another cluster is not let in, and is counted.
func TestStrangersAreKeptOut(t *testing.T) {
	ctx := testkit.Within(t)
	a, b := start(t, life(1, 1)), start(t, life(2, 1))
	b.join(ctx, a)
	a.sees(ctx, 2)
	for name, set := range map[string]func(*Config){
		"another key":     func(c *Config) { c.Keys = [][]byte{key(9)} },
		"no key":          func(c *Config) { c.Keys = nil },
		"another cluster": func(c *Config) { c.Cluster = "other" },
	} {
		before := a.Stats().Refused
		stranger := start(t, life(3, 1), set)
		if _, err := stranger.Join(ctx, []string{a.Address()}); !errors.Is(err, errs.ErrNoNode) {
			t.Errorf("%s: joining: %v", name, err)
		}
		if _, err := a.Join(ctx, []string{stranger.Address()}); !errors.Is(err, errs.ErrNoNode) {
			t.Errorf("%s: being joined: %v", name, err)
		}
		if a.Stats().Refused == before {
			t.Errorf("%s: not counted", name)
		}
		if got := stranger.homes(ctx, membership.Alive); len(got) != 1 {
			t.Errorf("%s: it sees %v", name, got)
		}
	}
	a.sees(ctx, 2)
}

// Keys change while nodes gossip: no node is lost, no load is, and in the end the old key opens nothing.
func TestKeysRotateUnderTraffic(t *testing.T) {
	ctx := testkit.Within(t)
	nodes := []*testNode{start(t, life(1, 1)), start(t, life(2, 1)), start(t, life(3, 1))}
	for _, n := range nodes[1:] {
		n.join(ctx, nodes[0])
	}
	version := uint64(0)
	traffic := func() { // of each node a load reaches the others
		t.Helper()
		version++
		for _, n := range nodes {
			if err := n.SetLoad(membership.Report{Version: version, Bytes: []byte("busy")}); err != nil {
				t.Fatal(err)
			}
		}
		for _, n := range nodes {
			n.sees(ctx, others(3, n.self.Home)...)
			n.until(ctx, fmt.Sprint("wants the loads ", version), func() bool {
				count := 0
				for _, f := range told[membership.LoadReceived](n) {
					if f.Load.Version == version {
						count++
					}
				}
				return count == 2
			})
		}
	}
	old := testKey
	for _, next := range [][]byte{key(8), key(9)} {
		traffic()
		for _, stage := range [][][]byte{{old, next}, {next, old}, {next}} {
			for i, n := range nodes {
				if err := n.SetKeys(stage); err != nil {
					t.Fatal(err)
				}
				if i == 1 {
					traffic() // some nodes are a stage ahead
				}
			}
		}
		traffic()
		if got := nodes[0].Keys().List(); !slices.Equal(got, []string{trust.Fingerprint(next)}) {
			t.Errorf("the ring has %v", got)
		}
		stranger := start(t, life(4, 1), func(c *Config) { c.Keys = [][]byte{old} })
		if _, err := stranger.Join(ctx, []string{nodes[0].Address()}); !errors.Is(err, errs.ErrNoNode) {
			t.Errorf("joining with the old key: %v", err)
		}
		stranger.kill()
		old = next
	}
	for _, n := range nodes {
		if dead := told[membership.NodeDead](n); dead != nil {
			t.Errorf("node %v was told of the deaths %+v", n.self, dead)
		}
	}
}

// A ring becomes any other one, and never has a third key on the way: a node that was away misses stages.
func TestTheRingOfKeys(t *testing.T) {
	var none *Keys
	if err := none.Set([][]byte{key(1)}); !errors.Is(err, ErrRing) || none.List() != nil {
		t.Error(err)
	}
	for _, bad := range [][][]byte{nil, {key(1)[:5]}, {key(1), key(1)}, {key(1), key(2), key(3)}} {
		k, err := newKeys([][]byte{key(4)})
		if err != nil {
			t.Fatal(err)
		}
		if err := k.Set(bad); !errors.Is(err, ErrRing) || !slices.Equal(k.List(), []string{trust.Fingerprint(key(4))}) {
			t.Errorf("%d keys: %v, the ring has %v", len(bad), err, k.List())
		}
	}
	var rings [][][]byte
	for a := range byte(4) {
		rings = append(rings, [][]byte{key(a)})
		for b := range byte(4) {
			if a != b {
				rings = append(rings, [][]byte{key(a), key(b)})
			}
		}
	}
	for _, from := range rings {
		for _, to := range rings {
			k, err := newKeys(from)
			if err != nil {
				t.Fatal(err)
			}
			if err := k.Set(to); err != nil || !slices.Equal(k.List(), trust.Fingerprints(to)) {
				t.Errorf("from %v to %v: %v, %v", trust.Fingerprints(from), trust.Fingerprints(to), k.List(), err)
			}
		}
	}
}

// What cannot be read is dropped and counted, and the node goes on.
func TestGarbage(t *testing.T) {
	for _, secret := range [][][]byte{{testKey}, nil} {
		ctx := testkit.Within(t)
		a := start(t, life(1, 1), func(c *Config) { c.Keys = secret })
		random := rand.New(rand.NewPCG(1, 2))
		junk := [][]byte{{0}, {244}, {244, 0}, {244, 9, 'x'}, []byte("GET / HTTP/1.1\r\n\r\n"), {22, 3, 1, 0, 200, 1, 0, 0, 196, 3, 3}}
		label, err := memberlist.AddLabelHeaderToPacket(nil, "test")
		if err != nil {
			t.Fatal(err)
		}
		for range 100 {
			b := make([]byte, 1+random.IntN(1400))
			for i := range b {
				b[i] = byte(random.Uint32())
			}
			junk = append(junk, b, append(slices.Clone(label), b...))
			for kind := range byte(16) { // a message of each kind, with nothing that makes sense in it
				junk = append(junk, append(append(slices.Clone(label), kind), b[:min(len(b), 40)]...))
			}
		}
		udp, err := net.Dial("udp", a.Address())
		if err != nil {
			t.Fatal(err)
		}
		for part := range slices.Chunk(junk, 20) {
			refuses(ctx, t, a, udp, part)
			tcp(t, a.Address(), part[0])
		}
		_ = udp.Close()
		b := start(t, life(2, 1), func(c *Config) { c.Keys = secret })
		b.join(ctx, a)
		a.sees(ctx, 2)
	}
}

// refuses sends packets of which a node counts one in four, and sends them again as long as it has not: the kernel may drop what it has no room for.
func refuses(ctx context.Context, t *testing.T, n *testNode, udp net.Conn, packets [][]byte) {
	t.Helper()
	again := time.NewTicker(5 * time.Millisecond)
	defer again.Stop()
	for want, i := n.Stats().Refused+uint64((len(packets)+3)/4), 0; n.Stats().Refused < want; i++ {
		if i%20 == 0 { // the node may still be at those that it was sent
			for _, b := range packets {
				if _, err := udp.Write(b); err != nil {
					t.Fatal(err)
				}
			}
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			t.Fatalf("of %d packets of garbage %d are not counted", len(packets), want-n.Stats().Refused)
		}
	}
}

// tcp sends bytes and waits until the other side has had enough.
func tcp(t *testing.T, address string, b []byte) {
	t.Helper()
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(testkit.Patience()))
	_, _ = c.Write(b)
	_ = c.(*net.TCPConn).CloseWrite()
	_, _ = new(bytes.Buffer).ReadFrom(c)
}

func TestWhatCannotBeStarted(t *testing.T) {
	taken := start(t, life(1, 1))
	for name, c := range map[string]struct {
		set  func(*Config)
		want error
	}{
		"off loopback without a key":   {func(c *Config) { c.Bind, c.Keys = "0.0.0.0:0", nil }, ErrNoKey},
		"told to others without a key": {func(c *Config) { c.Advertise, c.Keys = "10.0.0.1:7946", nil }, ErrNoKey},
		"on any address":               {func(c *Config) { c.Bind = "0.0.0.0:0" }, errs.ErrInvalid},
		"a short key":                  {func(c *Config) { c.Keys = [][]byte{key(1)[:7]} }, errs.ErrInvalid},
		"no cluster":                   {func(c *Config) { c.Cluster = "" }, errs.ErrInvalid},
		"a cluster with a long name":   {func(c *Config) { c.Cluster = strings.Repeat("x", 65) }, errs.ErrInvalid},
		"no address":                   {func(c *Config) { c.Bind = "localhost:1" }, errs.ErrInvalid},
		"no epoch":                     {func(c *Config) { c.Core.Self.Epoch = 0 }, errs.ErrInvalid},
		"a node with too much to say":  {func(c *Config) { c.Core.Self.Release = strings.Repeat("x", 512) }, membership.ErrMeta},
		"a port that is taken":         {func(c *Config) { c.Bind = taken.Address() }, errs.ErrComponentFailed},
	} {
		if _, err := tryStart(t, life(2, 1), c.set); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := taken.SetLoad(membership.Report{Version: 1, Bytes: make([]byte, membership.MaxLoad+1)}); !errors.Is(err, errs.ErrInvalid) {
		t.Errorf("a large load: %v", err)
	}
	if err := taken.Tell(membership.Seen{}); !errors.Is(err, errs.ErrInvalid) {
		t.Errorf("a word that is the gossip's: %v", err)
	}
}

// Nothing waits longer than it was told: for a node that accepts and never answers, for nobody, for a goodbye that nobody hears.
func TestNothingHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		t.Cleanup(func() { time.Sleep(time.Minute) }) // of the bubble, last: what memberlist has begun ends by time-outs
		net := memnet.New(1)
		silent, err := net.Listen(at(1))
		if err != nil {
			t.Fatal(err)
		}
		defer silent.Shutdown()
		a := start(t, life(1, 1), on(t, net, at(0)))
		began := time.Now()
		if _, err := a.Join(within(t, 100*time.Millisecond), []string{at(1)}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("joining a node that is silent: %v", err)
		}
		if d := time.Since(began); d != 100*time.Millisecond {
			t.Errorf("it was told to join for 100 ms, and took %v", d)
		}
		if err := a.Leave(within(t, time.Second)); err != nil { // it is alone
			t.Error(err)
		}
		began = time.Now()
		a.kill()
		if d := time.Since(began); d > 5*time.Second {
			t.Errorf("the end took %v", d)
		}
	})
}
