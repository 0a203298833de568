package shell

import (
	"errors"
	"testing"
	"time"

	"mobula/actors"
	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/remote"
)

// Panics of the actor, in steps of messages and of what was read, lose no message and double none.
func TestPanicsOfAPeer(t *testing.T) {
	onEach(t, func(t *testing.T, nw network) {
		quick := func(c *Config) { c.Policy = actors.Policy{MaxRestarts: actors.Unlimited, Backoff: time.Microsecond} }
		a, b := start(t, nw, 1, 1, quick), start(t, nw, 2, 1, quick)
		for _, n := range []*node{a, b} {
			for nth, kind := range map[int]string{700: "shell.send", 10: "shell.batch", 40: "shell.batch", 1: "shell.opened", 9: "shell.coreEvent"} {
				n.sys.Faults.Inject(actors.Fault{Kind: "remote", MessageType: kind, Nth: nth, Action: actors.PanicMidStep})
			}
			n.sys.Faults.Inject(actors.Fault{Kind: "remote", MessageType: "shell.send", Nth: 900, Times: 2, Action: actors.PanicMidStep})
		}
		talk(a, b, 0, 2000)
		check(t, a.awaitMessages(2000), b.life, 0, 2000)
		check(t, b.awaitMessages(2000), a.life, 0, 2000)
		for _, n := range []*node{a, b} {
			n.awaitPeer(3-n.life.Home, func(s Status) bool { return s.Bytes == 0 })
			if got := n.sys.Restarts()["remote"]; got < 5 {
				t.Errorf("%v: %d restarts", n.life, got)
			}
			panicConnected(n, 3-n.life.Home) // those before may all have met an actor that was not connected
			awaitNotice(n, func(d remote.Down) bool { return errors.Is(d.Err, errs.ErrPanic) })
			n.mu.Lock()
			up := false
			for _, x := range n.notices {
				switch x.(type) {
				case remote.Up:
					if up {
						t.Error("Up follows Up")
					}
					up = true
				case remote.Down:
					if !up {
						t.Error("Down follows Down")
					}
					up = false
				default:
					t.Errorf("%+v", x)
				}
			}
			n.mu.Unlock()
		}
	})
}

// onActor runs a test's function as an event.
type onActor struct {
	mark
	f func(now int64, d *driven)
}

func (e *onActor) step(now int64, d *driven) { e.f(now, d) }

// panicConnected has the actor of a peer panic once while it is connected.
func panicConnected(n *node, home ids.Home) {
	n.t.Helper()
	p, err := n.peer(home)
	if err != nil {
		n.t.Fatal(err)
	}
	for i, panicked := 2000, false; !panicked; i++ {
		n.sendAll(home, i, 1) // nobody dials while nothing waits
		n.awaitPeer(home, func(s Status) bool { return s.Bytes == 0 })
		stepped := make(chan bool)
		p.ref.Deliver(&onActor{f: func(int64, *driven) {
			if _, up, _ := p.gate.state(); up && !panicked {
				panicked = true
				panic("while connected")
			}
			stepped <- true
		}})
		<-stepped
	}
}

// A message whose effects panic was stepped: it is written on the next connection, and not sent a second time.
func TestAPanicOfAnEffect(t *testing.T) {
	nw := memoryNetwork{NewMemory()}
	a, b := start(t, nw, 1, 1), start(t, nw, 2, 1)
	a.sendAll(2, 0, 1)
	b.awaitMessages(1)
	p, err := a.peer(2)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.gate.try(len(numbered(1))); err != nil {
		t.Fatal(err)
	}
	p.ref.Deliver(&onActor{f: func(now int64, d *driven) {
		l := newLink(p, panics{}, nil)
		p.links[l.id] = l
		d.fx = append(d.fx, remote.Close{Conn: l.id, Err: errInjected}) // before the message is written
		d.sent = numbered(1)
		d.step(now, remote.Send{Payload: d.sent})
	}})
	a.sendAll(2, 2, 1)
	check(t, b.awaitMessages(3), a.life, 0, 3)
	a.awaitPeer(2, func(s Status) bool { return s.Bytes == 0 })
	if got := a.sys.Restarts()["remote"]; got != 1 {
		t.Errorf("%d restarts, want 1", got)
	}
}

// panics is a connection that does.
type panics struct{ Conn }

func (panics) SetWriteDeadline(time.Time) error { panic("deadline") }
func (panics) Close() error                     { return nil }

// A step that panics in the middle has changed nothing.
func TestAPanicOfAStep(t *testing.T) {
	nw := memoryNetwork{NewMemory()}
	a, b := start(t, nw, 1, 1), start(t, nw, 2, 1)
	p, err := a.peer(2)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.gate.try(len(numbered(0))); err != nil {
		t.Fatal(err)
	}
	first := true
	p.ref.Deliver(&onActor{f: func(now int64, d *driven) {
		d.sent = numbered(0)
		d.step(now, remote.Send{Payload: d.sent})
		if first {
			first = false
			panic("in the middle")
		}
	}})
	a.sendAll(2, 1, 1)
	check(t, b.awaitMessages(2), a.life, 0, 2)
	a.awaitPeer(2, func(s Status) bool { return s.Bytes == 0 })
}

// The other node learns that the connections are gone, though nothing waits for it.
func TestAPanicEndsConnections(t *testing.T) {
	nw := memoryNetwork{NewMemory()}
	a, b := start(t, nw, 1, 1), start(t, nw, 2, 1)
	talk(a, b, 0, 1)
	for _, n := range []*node{a, b} {
		n.awaitMessages(1)
		n.awaitPeer(3-n.life.Home, func(s Status) bool { return s.Bytes == 0 })
	}
	p, err := a.peer(2)
	if err != nil {
		t.Fatal(err)
	}
	first := true
	p.ref.Deliver(&onActor{f: func(int64, *driven) {
		if first {
			first = false
			panic("for once")
		}
	}})
	awaitNotice(b, func(d remote.Down) bool { return d.Peer == a.life })
	b.sendAll(1, 1, 1)
	check(t, a.awaitMessages(2), b.life, 0, 2)
}

// A message on which two cores panic is given back.
func TestAPoisonedMessageIsGivenBack(t *testing.T) {
	a := start(t, memoryNetwork{NewMemory()}, 1, 1)
	p, err := a.peer(2)
	if err != nil {
		t.Fatal(err)
	}
	p.gate.bytes += 1 + overhead
	p.ref.Deliver(&onActor{f: func(int64, *driven) { p.poisoned(nil, &send{payload: []byte("x")}, errInjected) }})
	given := awaitNotice(a, func(remote.Refused) bool { return true })
	if string(given.Payload) != "x" || !errors.Is(given.Err, errInjected) {
		t.Errorf("%+v", given)
	}
	a.awaitPeer(2, func(s Status) bool { return s.Bytes == 0 })
}

// A handler that panics loses what it was handed, and nothing else.
func TestAHandlerThatPanics(t *testing.T) {
	nw := memoryNetwork{NewMemory()}
	a := start(t, nw, 1, 1)
	b := start(t, nw, 2, 1, func(c *Config) {
		deliver := c.Deliver
		c.Deliver = func(from remote.Life, payload []byte) {
			if string(payload) == string(numbered(3)) {
				panic("three")
			}
			deliver(from, payload)
		}
	})
	a.sendAll(2, 0, 6)
	got := b.awaitMessages(5)
	check(t, got[:3], a.life, 0, 3)
	check(t, got[3:], a.life, 4, 2)
}
