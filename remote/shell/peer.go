package shell

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"mobula/actors"
	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/remote"
)

// peer is the actor of another node, and what has to outlive its core.
type peer struct {
	hub  *Hub
	home ids.Home
	cfg  remote.Config
	ref  *actors.Ref[event]
	gate gate
	in   inbound

	agreed atomic.Uint32 // the version that both nodes speak; 0: it was not met yet

	// On the actor's goroutine only.
	saved  saved
	links  map[remote.ConnID]*link
	dirty  []*link // pushed to since the last flush
	disarm func()  // the timer; nil: none is armed

	mu   sync.Mutex
	life remote.Life // guarded by mu: what notices have said
}

// spawnPeer starts the actor of another node.
func (h *Hub) spawnPeer(home ids.Home) (*peer, error) {
	cfg := h.cfg.Core
	cfg.Self, cfg.Peer = h.cfg.Self, home
	p := &peer{
		hub: h, home: home, cfg: cfg, saved: newSaved(), links: make(map[remote.ConnID]*link),
		gate: gate{home: home, limit: cfg.Limit}, in: inbound{turn: make(chan struct{}, 1)}, life: remote.Life{Home: home},
	}
	var err error
	p.ref, err = actors.Spawn(h.sup, actors.Spec[event, remote.Effect]{
		Kind: "remote", Name: fmt.Sprintf("remote/%v", home),
		New: p.build, Do: p.do, Flush: p.flush, Stop: p.stop, OnPoison: p.poisoned, Vital: vital,
		Policy: h.cfg.Policy, Mailbox: math.MaxInt32, // messages are bounded by the gate, what links bring by their number
	})
	return p, err
}

// send has the core step a message that the gate has let in. It does not wait.
func (p *peer) send(payload []byte, life uint64) error {
	err := p.ref.SendRun(context.Background(), &send{payload: payload, life: life})
	if err != nil { // the peer has stopped
		p.gate.give(len(payload))
	}
	return err
}

// build makes a core: of what the one before it had after its last step. Its connections are closed, since it may not have written what it was asked to.
func (p *peer) build(start actors.Start) (actors.Core[event, remote.Effect], []event, error) {
	d := &driven{peer: p, core: p.saved.core(p.cfg)}
	if start.Restart == 0 {
		return d, nil, nil
	}
	for id, l := range p.links {
		delete(p.links, id)
		l.fail(start.Reason)
	}
	p.dirty, p.disarm = nil, nil
	if _, up, _ := p.gate.state(); up {
		p.hand([]item{{notice: remote.Down{Peer: p.met(), Err: start.Reason}}}, false)
	}
	return d, []event{&coreEvent{ev: remote.Timer{}}}, nil // it dials, if something waits
}

// do runs one effect on the actor's goroutine. It does not wait: links write on goroutines of their own.
func (p *peer) do(self *actors.Ref[event], f remote.Effect) {
	switch f := f.(type) {
	case *remote.Write:
		p.push(f.Conn, frame{kind: kindMessage, number: f.Number, body: f.Payload})
	case *remote.WriteAck:
		if l := p.links[f.Conn]; l != nil {
			l.acknowledge(f.Number)
			p.dirty = append(p.dirty, l)
		}
	case remote.WriteUse:
		p.push(f.Conn, frame{kind: kindUse})
	case remote.WriteHello:
		p.push(f.Conn, frame{kind: kindHello, body: p.hub.hello(f.Hello)})
	case remote.Close:
		if l := p.links[f.Conn]; l != nil {
			delete(p.links, f.Conn)
			l.close(f.Err)
		}
	case remote.Dial:
		p.hub.start(p.dial)
	case remote.After:
		if p.disarm != nil {
			p.disarm()
		}
		p.disarm = self.After(f.Delay, &coreEvent{ev: remote.Timer{}})
	default:
		panic(fmt.Sprintf("remote: a peer asks for a %T, which nobody does", f)) // a fault of the program
	}
}

func (p *peer) push(id remote.ConnID, f frame) {
	l := p.links[id]
	if l == nil {
		return // it has ended
	}
	l.push(f)
	if n := len(p.dirty); n == 0 || p.dirty[n-1] != l {
		p.dirty = append(p.dirty, l)
	}
}

// flush has the writers write what the last events have pushed.
func (p *peer) flush() {
	for i, l := range p.dirty {
		l.flush()
		p.dirty[i] = nil
	}
	p.dirty = p.dirty[:0]
}

// hand hands items over to the handlers: by the reader that has the turn, or by a goroutine.
func (p *peer) hand(items []item, reader bool) {
	for i := range items {
		if n := items[i].notice; n != nil {
			p.note(n)
		}
	}
	if p.in.add(items, reader) {
		p.hub.start(p.tell)
	}
}

// vital tells of a message that the core has not taken: whoever sends it takes it for sent, and the core looks at its length alone.
func vital(ev event) bool {
	_, sends := ev.(*send)
	return sends && !*ev.committed()
}

// poisoned drops an event on which two cores have panicked. A message is given back, where the node stops. What was read is read again on another connection: the core has not taken it.
func (p *peer) poisoned(_ *actors.Ref[event], ev event, err error) {
	if *ev.committed() {
		return // only effects of it were lost, and with them the connections
	}
	switch ev := ev.(type) {
	case *send:
		p.gate.leave(1, len(ev.payload), p.saved.kept.Full)
		p.hand([]item{{notice: remote.Refused{Payload: ev.payload, Err: err}}}, false)
	case *batch:
		ev.stepped <- struct{}{}
	case *opened:
		ev.link.fail(err)
	}
}

// stop ends the peer: what was not acknowledged is dropped with it.
func (p *peer) stop() {
	p.gate.close(errs.New(errs.CodeShutdown, "messages to node %v have stopped", p.home))
	for _, l := range p.links {
		l.fail(errStopped)
	}
}

var errStopped = errors.New("remote: this node stops")

// dial makes a connection to the other node, and reads from it until it ends.
func (p *peer) dial() {
	conn, err := p.connect()
	if err != nil {
		p.gate.failed(err)
		p.ref.Deliver(&coreEvent{ev: remote.DialFailed{Err: err}})
		return
	}
	l := newLink(p, conn, newDecoder(maxHello))
	if !p.open(l, true) {
		return
	}
	_ = conn.SetReadDeadline(p.hub.deadline()) // an error comes again with the read
	g, err := p.hub.readHello(conn, l.dec)
	if err != nil {
		if l.fail(err) {
			p.hub.log.Warn("remote: a node cannot be talked with", "node", p.home, "err", err)
		}
		return
	}
	_ = conn.SetReadDeadline(time.Time{})
	p.ref.Deliver(greeting(l, g))
	l.read()
}

// connect finds the other node.
func (p *peer) connect() (Conn, error) {
	ctx, cancel := context.WithTimeout(p.hub.ctx, p.cfg.Handshake)
	defer cancel()
	address, err := p.hub.cfg.Address(ctx, p.home)
	if err != nil {
		return nil, fmt.Errorf("remote: the address of node %v: %w", p.home, err)
	}
	conn, err := p.hub.cfg.Transport.Dial(ctx, address)
	if err != nil {
		return nil, fmt.Errorf("remote: dial node %v at %s: %w", p.home, address, err)
	}
	if err := p.hub.verify(conn, p.home); err != nil {
		_ = conn.Close() // err says more
		return nil, err
	}
	return conn, nil
}

// open gives the core a link, and starts its writer. False: the hub is closed.
func (p *peer) open(l *link, dialed bool) bool {
	if !p.hub.keep(l) {
		_ = l.conn.Close() // nobody is told: it was never there
		return false
	}
	p.ref.Deliver(&opened{link: l, dialed: dialed})
	return true
}
