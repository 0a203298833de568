package shell

import (
	"bytes"
	"context"
	"errors"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"mobula/internal/errs"
	"mobula/remote"
)

// What a hub promises, over each transport.
func TestConformance(t *testing.T) {
	for _, c := range []struct {
		name string
		test func(*testing.T, network)
	}{
		{"order", testOrder},
		{"cuts at random bytes", testCuts},
		{"connections that break at once", testBreaks},
		{"writes that take a part", testLate},
		{"refused dials", testRefused},
		{"back-pressure", testBackPressure},
		{"a handler that blocks for long", testBusy},
		{"large messages", testLarge},
		{"silence", testSilence},
		{"a node that accepts and never answers", testNeverAnswers},
		{"half a hello", testHalfAHello},
		{"restart of a node", testRestart},
		{"a stale life", testStaleLife},
		{"both dial at once", testBothDial},
	} {
		t.Run(c.name, func(t *testing.T) { onEach(t, c.test) })
	}
}

// talk sends messages both ways at once.
func talk(a, b *node, first, count int) {
	var wg sync.WaitGroup
	wg.Go(func() { a.sendAll(b.life.Home, first, count) })
	wg.Go(func() { b.sendAll(a.life.Home, first, count) })
	wg.Wait()
}

func testOrder(t *testing.T, nw network) {
	a, b := start(t, nw, 1, 1), start(t, nw, 2, 1)
	talk(a, b, 0, 3000)
	check(t, a.awaitMessages(3000), b.life, 0, 3000)
	check(t, b.awaitMessages(3000), a.life, 0, 3000)
	awaitNotice(a, func(n remote.Up) bool { return n.Peer == b.life })
	s := a.awaitPeer(2, func(s Status) bool { return s.Bytes == 0 })
	if s != (Status{Home: 2, Life: b.life, Connected: true}) {
		t.Errorf("%+v", s)
	}
	if err := a.Send(t.Context(), remote.Life{Home: 1}, []byte("x")); !errors.Is(err, errs.ErrInvalid) {
		t.Errorf("a message to itself: %v", err)
	}
	if err := a.Send(t.Context(), remote.Life{Home: 2}, nil); !errors.Is(err, errs.ErrInvalid) {
		t.Errorf("an empty message: %v", err)
	}
}

func testCuts(t *testing.T, nw network) {
	var fa, fb faults
	a, b := start(t, nw, 1, 1, withFaults(&fa)), start(t, nw, 2, 1, withFaults(&fb))
	fa.set(func() { fa.most = 20_000 })
	fb.set(func() { fb.most = 20_000 })
	const count = 2000
	talk(a, b, 0, count)
	check(t, a.awaitMessages(count), b.life, 0, count)
	check(t, b.awaitMessages(count), a.life, 0, count)
	broken := 0
	for _, f := range []*faults{&fa, &fb} {
		f.set(func() { broken += f.broken })
	}
	if broken < 10 {
		t.Errorf("only %d connections were broken", broken)
	}
}

// Connections are closed below the hub, while it writes, reads, or says hello.
func testBreaks(t *testing.T, nw network) {
	a, b := start(t, nw, 1, 1), start(t, nw, 2, 1)
	const count = 5000
	stop, broken := make(chan struct{}), 0
	var wg sync.WaitGroup
	wg.Go(func() {
		tick := time.NewTicker(2 * time.Millisecond)
		defer tick.Stop()
		for i := 0; broken < 40; i++ {
			for _, l := range []*node{a, b}[i%2].open() {
				_ = l.conn.Close()
				broken++
			}
			select {
			case <-tick.C:
			case <-stop:
				return
			}
		}
	})
	talk(a, b, 0, count)
	check(t, a.awaitMessages(count), b.life, 0, count)
	check(t, b.awaitMessages(count), a.life, 0, count)
	close(stop)
	if wg.Wait(); broken == 0 {
		t.Error("no connection was broken")
	}
}

func testLate(t *testing.T, nw network) {
	var fa, fb faults
	fa.late, fb.late = true, true
	a, b := start(t, nw, 1, 1, withFaults(&fa)), start(t, nw, 2, 1, withFaults(&fb))
	for i := range 100 { // one by one: each is written by who sends it
		a.sendAll(2, i, 1)
		b.awaitMessages(i + 1)
	}
	talk(a, b, 100, 1000)
	check(t, b.awaitMessages(1100), a.life, 0, 1100)
	check(t, a.awaitMessages(1000), b.life, 100, 1000)
	for _, n := range []*node{a, b} {
		n.mu.Lock()
		if len(n.notices) != 1 {
			t.Errorf("%v: %+v", n.life, n.notices)
		}
		n.mu.Unlock()
	}
}

func testRefused(t *testing.T, nw network) {
	var f faults
	a, b := start(t, nw, 1, 1, withFaults(&f)), start(t, nw, 2, 1)
	f.set(func() { f.refuse = true })
	a.sendAll(2, 0, 10)
	a.awaitPeer(2, func(s Status) bool { return errors.Is(s.Err, errInjected) })
	f.set(func() { f.refuse = false })
	check(t, b.awaitMessages(10), a.life, 0, 10)
}

func testBackPressure(t *testing.T, nw network) {
	small := func(c *Config) { c.Core.High, c.Core.Low, c.Core.Limit = 1<<20, 1<<19, 2<<20 }
	a, b := start(t, nw, 1, 1, small), start(t, nw, 2, 1)
	b.block()
	sent, stop := 0, errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	for err := error(nil); err == nil; {
		payload := bytes.Repeat([]byte{byte(sent)}, 50_000)
		if err = a.TrySend(remote.Life{Home: 2}, payload); err == nil {
			sent++
		} else if !errors.Is(err, errs.ErrBacklog) {
			t.Fatal(err)
		}
	}
	full := a.awaitPeer(2, func(s Status) bool { return s.Connected && s.Bytes > 1<<20 && a.isFull(2) })
	if full.Bytes > 2<<20 {
		t.Errorf("%d bytes wait", full.Bytes)
	}
	waited := make(chan error, 2)
	go func() { waited <- a.Send(ctx, remote.Life{Home: 2}, []byte("never")) }()
	cancel(stop)
	if err := <-waited; !errors.Is(err, stop) {
		t.Errorf("a send whose context ends: %v", err)
	}
	go func() { waited <- a.Send(t.Context(), remote.Life{Home: 2}, []byte("last")) }()
	b.release()
	got := b.awaitMessages(sent + 1)
	if err := <-waited; err != nil || got[sent].payload != "last" {
		t.Errorf("a send that waited for room: %v, %d messages", err, len(got))
	}
	for i, m := range got[:sent] {
		if len(m.payload) != 50_000 || m.payload[0] != byte(i) {
			t.Errorf("message %d is one of %d bytes %x", i, len(m.payload), m.payload[0])
		}
	}
}

// While its handler blocks a node says that it lives, and neither gives the other up.
func testBusy(t *testing.T, nw network) {
	var f faults
	fast := func(c *Config) { c.Core.Silence = 600 * time.Millisecond } // a busy machine is not silent for so long
	a, b := start(t, nw, 1, 1, fast), start(t, nw, 2, 1, fast, withFaults(&f))
	b.block()
	a.sendAll(2, 0, 1)
	b.awaitMessages(1)
	a.sendAll(2, 1, 1)        // is not read
	b.sendAll(1, 0, 1)        // its acknowledgement is not read
	signs := f.written() + 12 // each a quarter of the silence after the one before
	b.awaitPeer(1, func(Status) bool { return f.written() >= signs })
	b.release()
	check(t, b.awaitMessages(2), a.life, 0, 2)
	check(t, a.awaitMessages(1), b.life, 0, 1)
	for _, n := range []*node{a, b} {
		n.mu.Lock()
		if i := slices.IndexFunc(n.notices, func(x remote.Notice) bool { _, down := x.(remote.Down); return down }); i >= 0 {
			t.Errorf("%v: %+v", n.life, n.notices[i])
		}
		n.mu.Unlock()
	}
}

func testLarge(t *testing.T, nw network) {
	a, b := start(t, nw, 1, 1), start(t, nw, 2, 1)
	large := bytes.Repeat([]byte("0123456789abcdef"), 1<<20)
	var wg sync.WaitGroup
	for _, n := range []*node{a, b} {
		wg.Go(func() {
			to := 3 - n.life.Home
			n.sendAll(to, 0, 100)
			for range 2 {
				if err := n.Send(t.Context(), remote.Life{Home: to}, large); err != nil {
					t.Error(err)
				}
			}
			n.sendAll(to, 100, 100)
		})
	}
	wg.Wait()
	for _, n := range []*node{a, b} {
		got, from := n.awaitMessages(202), remote.Life{Home: 3 - n.life.Home, Epoch: 1}
		check(t, got[:100], from, 0, 100)
		check(t, got[102:], from, 100, 100)
		if got[100].payload != string(large) || got[101].payload != string(large) {
			t.Error("a large message is not what was sent")
		}
	}
	if err := a.Send(t.Context(), remote.Life{Home: 2}, append(large, 0)); !errors.Is(err, errs.ErrInvalid) {
		t.Errorf("a message that is too large: %v", err)
	}
}

func testSilence(t *testing.T, nw network) {
	var f faults
	fast := func(c *Config) { c.Core.Silence, c.Core.Handshake = 50*time.Millisecond, 50*time.Millisecond }
	a, b := start(t, nw, 1, 1, fast), start(t, nw, 2, 1, withFaults(&f))
	a.sendAll(2, 0, 1)
	b.awaitMessages(1)
	a.awaitPeer(2, func(s Status) bool { return s.Bytes == 0 })
	f.stall()
	a.sendAll(2, 1, 1)
	awaitNotice(a, func(d remote.Down) bool { return errors.Is(d.Err, remote.ErrSilent) })
	f.goOn()
	a.sendAll(2, 2, 1)
	check(t, b.awaitMessages(3), a.life, 0, 3)
	a.awaitPeer(2, func(s Status) bool { return s.Bytes == 0 && s.Connected })
}

// accepting has something done with each connection that is made to node 2, which no hub has, until the test takes the node back.
func accepting(t *testing.T, nw network, do func(Conn)) (end func()) {
	tr := nw.listen(t, 2)
	var wg sync.WaitGroup
	var mu sync.Mutex
	var conns []Conn
	wg.Go(func() {
		for {
			c, err := tr.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			conns = append(conns, c)
			mu.Unlock()
			do(c)
		}
	})
	return func() {
		_ = tr.Close()
		wg.Wait()
		for _, c := range conns {
			_ = c.Close()
		}
	}
}

// testNeverAnswers is of a node that is there, and says nothing. It is given up each time, and what waits for it gets there once it does.
func testNeverAnswers(t *testing.T, nw network) {
	a := start(t, nw, 1, 1, func(c *Config) { c.Core.Handshake = 50 * time.Millisecond })
	end := accepting(t, nw, func(Conn) {})
	a.sendAll(2, 0, 3)
	for range 2 {
		a.awaitPeer(2, func(s Status) bool { return s.Err != nil && !s.Connected && len(a.open()) == 0 })
		a.awaitPeer(2, func(s Status) bool { return !s.Connected && len(a.open()) == 1 })
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errInjected)
	for err := error(nil); err == nil; { // until there is no more room
		err = a.TrySend(remote.Life{Home: 2}, make([]byte, 8<<20))
	}
	if err := a.Send(ctx, remote.Life{Home: 2}, []byte("x")); !errors.Is(err, errInjected) || !errors.Is(err, os.ErrDeadlineExceeded) && !errors.Is(err, remote.ErrHandshake) {
		t.Errorf("who waits for it is told %v", err)
	}
	end()
	b := start(t, nw, 2, 1)
	check(t, b.awaitMessages(3)[:3], a.life, 0, 3)
}

// testHalfAHello is of a node that breaks off in its first words.
func testHalfAHello(t *testing.T, nw network) {
	a := start(t, nw, 1, 1)
	h := hello{versions: ours, cluster: "test", Hello: remote.Hello{From: remote.Life{Home: 2, Epoch: 1}, To: 1}}
	body := h.encode()
	said := append((&frame{kind: kindHello, body: body}).appendHead(nil), body...)
	end := accepting(t, nw, func(c Conn) {
		_, _ = c.Write(said[:len(said)/2])
		_ = c.Close()
	})
	a.sendAll(2, 0, 3)
	s := a.awaitPeer(2, func(s Status) bool { return s.Err != nil })
	if !errors.Is(s.Err, errs.ErrProtocol) && !errors.Is(s.Err, ErrBroken) {
		t.Errorf("it is given up with %v", s.Err)
	}
	end()
	b := start(t, nw, 2, 1)
	check(t, b.awaitMessages(3), a.life, 0, 3)
}

func testRestart(t *testing.T, nw network) {
	a, b := start(t, nw, 1, 1), start(t, nw, 2, 1)
	talk(a, b, 0, 10)
	check(t, b.awaitMessages(10), a.life, 0, 10)
	check(t, a.awaitMessages(10), b.life, 0, 10)
	a.awaitPeer(2, func(s Status) bool { return s.Bytes == 0 })
	b.stop()
	awaitNotice(a, func(d remote.Down) bool { return d.Peer == b.life })
	a.sendAll(2, 10, 5) // for the life that is over
	again := start(t, nw, 2, 2)
	restarted := awaitNotice(a, func(remote.Restarted) bool { return true })
	if restarted != (remote.Restarted{Was: b.life, Is: again.life, Dropped: 5}) {
		t.Errorf("%+v", restarted)
	}
	talk(a, again, 20, 10)
	check(t, again.awaitMessages(10), a.life, 20, 10)
	check(t, a.awaitMessages(20)[10:], again.life, 20, 10)
}

func testStaleLife(t *testing.T, nw network) {
	a, old := start(t, nw, 1, 1), start(t, nw, 2, 1)
	talk(a, old, 0, 1)
	old.awaitMessages(1)
	a.awaitMessages(1)
	a.awaitPeer(2, func(s Status) bool { return s.Bytes == 0 })
	if err := a.Fence(2, 1); err != nil {
		t.Fatal(err)
	}
	if gone := awaitNotice(a, func(remote.Gone) bool { return true }); gone != (remote.Gone{Was: old.life}) {
		t.Errorf("%+v", gone)
	}
	old.sendAll(1, 1, 1) // it does not know yet
	old.awaitPeer(1, func(s Status) bool { return !s.Connected && s.Err != nil })
	if m, ok := nw.(memoryNetwork); ok { // the next life has the address
		m.mu.Lock()
		delete(m.nodes, name(2))
		m.mu.Unlock()
	}
	next := start(t, nw, 2, 2)
	a.sendAll(2, 2, 1)
	check(t, next.awaitMessages(1), a.life, 2, 1)
	awaitNotice(old, func(s remote.Superseded) bool { return s.Epoch == 2 })
	if err := old.Send(t.Context(), remote.Life{Home: 1}, []byte("x")); !errors.Is(err, errs.ErrShutdown) {
		t.Errorf("a message of a life that is over: %v", err)
	}
	next.sendAll(1, 3, 1)
	check(t, a.awaitMessages(2)[1:], next.life, 3, 1)
}

func testBothDial(t *testing.T, nw network) {
	a, b := start(t, nw, 1, 1), start(t, nw, 2, 1)
	for round := range 20 {
		talk(a, b, round, 1)
		check(t, a.awaitMessages(round+1), b.life, 0, round+1)
		check(t, b.awaitMessages(round+1), a.life, 0, round+1)
		for _, n := range []*node{a, b} { // one connection is left; or none, where that one was of the round before and is noticed to be broken now
			n.awaitPeer(3-n.life.Home, func(s Status) bool {
				return s.Bytes == 0 && (len(n.open()) == 1 && s.Connected || len(n.open()) == 0 && !s.Connected)
			})
		}
		for _, n := range []*node{a, b} {
			for _, l := range n.open() {
				l.fail(errInjected)
			}
		}
	}
}

// open gives the connections that there are.
func (n *node) open() (out []*link) {
	n.live.Lock()
	defer n.live.Unlock()
	for l := range n.live.links {
		out = append(out, l)
	}
	return out
}
