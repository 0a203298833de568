package shell

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"mobula/actors"
	"mobula/internal/ids"
	"mobula/internal/testkit"
	"mobula/remote"
)

// ours are the versions that the nodes of tests speak.
var ours = Versions{Max: 3, Min: 2}

// message is what a node was handed.
type message struct {
	from    remote.Life
	payload string
}

// node is one life of a node in a test.
type node struct {
	*Hub
	t    testing.TB
	sys  *actors.System
	life remote.Life
	log  *syncBuffer
	once sync.Once

	mu      sync.Mutex
	changed chan struct{} // closed when something comes
	got     []message
	notices []remote.Notice
	hold    chan struct{} // not nil: the handler waits for its end
}

// start begins a life of a node, on a network.
func start(t testing.TB, nw network, home ids.Home, epoch uint64, set ...func(*Config)) *node {
	t.Helper()
	n := &node{t: t, sys: actors.NewSystem(actors.Config{}), life: remote.Life{Home: home, Epoch: epoch}, changed: make(chan struct{}), log: new(syncBuffer)}
	core := remote.DefaultConfig(n.life, 0)
	core.RetryMin, core.RetryMax = time.Millisecond, 20*time.Millisecond
	cfg := Config{
		Self: n.life, Cluster: "test", Versions: ours, Transport: nw.listen(t, home), Address: nw.address, Verify: nw.verify,
		Deliver: n.deliver, Notice: n.notice, Core: core, Logger: slog.New(slog.NewTextHandler(n.log, nil)),
	}
	for _, f := range set {
		f(&cfg)
	}
	hub, err := Open(n.sys, cfg)
	if err != nil {
		t.Fatal(err)
	}
	n.Hub = hub
	t.Cleanup(n.stop)
	return n
}

// stop ends the life; a second time it does nothing.
func (n *node) stop() {
	n.once.Do(func() {
		n.release()
		ctx, cancel := context.WithTimeout(context.Background(), testkit.Patience())
		defer cancel()
		if err := errors.Join(n.Close(ctx), n.sys.StopTree(ctx)); err != nil {
			n.t.Errorf("%v: %v", n.life, err)
		}
	})
}

func (n *node) tell() {
	close(n.changed)
	n.changed = make(chan struct{})
}

func (n *node) deliver(from remote.Life, payload []byte) {
	n.mu.Lock()
	n.got = append(n.got, message{from, string(payload)})
	hold := n.hold
	n.tell()
	n.mu.Unlock()
	if hold != nil {
		<-hold
	}
}

func (n *node) notice(_ ids.Home, x remote.Notice) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.notices = append(n.notices, x)
	n.tell()
}

// block has the handler wait.
func (n *node) block() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.hold = make(chan struct{})
}

func (n *node) release() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.hold != nil {
		close(n.hold)
		n.hold = nil
	}
}

// await waits until ok, which is asked with n.mu held each time that something comes.
func (n *node) await(what string, ok func() bool) {
	n.t.Helper()
	late := time.After(testkit.Patience())
	for {
		n.mu.Lock()
		yes, changed := ok(), n.changed
		n.mu.Unlock()
		if yes {
			return
		}
		select {
		case <-changed:
		case <-late:
			n.mu.Lock()
			defer n.mu.Unlock()
			n.t.Fatalf("%v waits for %s in vain: it has %d messages, notices %+v, peers %+v\n%s", n.life, what, len(n.got), n.notices, n.Peers(), n.log)
		}
	}
}

// awaitMessages waits for a number of messages, and gives all.
func (n *node) awaitMessages(count int) []message {
	n.t.Helper()
	n.await(fmt.Sprint(count, " messages"), func() bool { return len(n.got) >= count })
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.got
}

// awaitNotice waits for the first notice of a type of which ok is true.
func awaitNotice[N remote.Notice](n *node, ok func(N) bool) (out N) {
	n.t.Helper()
	n.await(fmt.Sprintf("a %T", out), func() bool {
		for _, x := range n.notices {
			if x, is := x.(N); is && ok(x) {
				out = x
				return true
			}
		}
		return false
	})
	return out
}

// awaitPeer waits until what the hub says of a node is so. Nothing tells of each change, so it looks again now and then.
func (n *node) awaitPeer(home ids.Home, ok func(Status) bool) Status {
	n.t.Helper()
	late := time.After(testkit.Patience())
	again := time.NewTicker(time.Millisecond)
	defer again.Stop()
	for {
		for _, s := range n.Peers() {
			if s.Home == home && ok(s) {
				return s
			}
		}
		select {
		case <-again.C:
		case <-late:
			n.t.Fatalf("%v: %+v\n%s", n.life, n.Peers(), n.log)
		}
	}
}

// isFull tells whether those who send to a node have to wait.
func (n *node) isFull(home ids.Home) bool {
	n.Hub.mu.RLock()
	g := &n.peers[home].gate
	n.Hub.mu.RUnlock()
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.full
}

// sendAll sends numbered messages to a node, of sizes that vary.
func (n *node) sendAll(to ids.Home, first, count int) {
	for i := first; i < first+count; i++ {
		if err := n.Send(n.t.Context(), remote.Life{Home: to}, numbered(i)); err != nil {
			n.t.Errorf("%v: message %d: %v", n.life, i, err)
			return
		}
	}
}

func numbered(i int) []byte {
	return append(fmt.Appendf(nil, "%d ", i), bytes.Repeat([]byte{'.'}, i*37%300)...)
}

// check holds messages against those that sendAll has sent.
func check(t testing.TB, got []message, from remote.Life, first, count int) {
	t.Helper()
	if len(got) != count {
		t.Fatalf("%d messages, want %d", len(got), count)
	}
	for i, m := range got {
		if m.from != from || m.payload != string(numbered(first+i)) {
			t.Fatalf("message %d is %.20q of %v, want %.20q of %v", i, m.payload, m.from, numbered(first+i), from)
		}
	}
}

// syncBuffer is a log that many goroutines write.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// network is a transport under test.
type network interface {
	listen(t testing.TB, home ids.Home) Transport
	address(ctx context.Context, home ids.Home) (string, error)
	verify(s tls.ConnectionState, home ids.Home) error
}

// onEach runs a test over each transport.
func onEach(t *testing.T, f func(t *testing.T, nw network)) {
	t.Run("memory", func(t *testing.T) { f(t, memoryNetwork{NewMemory()}) })
	t.Run("tcp", func(t *testing.T) { f(t, newTCPNetwork()) })
}

type memoryNetwork struct{ *Memory }

func name(home ids.Home) string { return fmt.Sprintf("node-%v", home) }

func (n memoryNetwork) listen(t testing.TB, home ids.Home) Transport {
	tr, err := n.Listen(name(home))
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

func (n memoryNetwork) address(_ context.Context, home ids.Home) (string, error) {
	return name(home), nil
}

func (n memoryNetwork) verify(tls.ConnectionState, ids.Home) error { return nil }
