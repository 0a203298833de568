package world

import (
	"maps"
	"slices"
	"time"

	"mobula/internal/ids"
	"mobula/remote"
)

// peerShell is the shell of what a node has with one other: the core of package remote, and what outlives it.
type peerShell struct {
	*part[*peerEvent, remote.Effect]
	to      *Node
	core    *remote.Peer
	kept    remote.Kept
	waiting [][]byte // not acknowledged
	ends    map[remote.ConnID]*end
	last    remote.ConnID
	timer   *timer
	up      bool
	handed  *box // what was delivered, and news of the other node: for who handles them, in order
}

// peerEvent is an event of the core. One that was stepped is not stepped again: what it changed is kept.
type peerEvent struct {
	ev   remote.Event
	done bool
}

// delivered is a message of another node.
type delivered struct {
	from    remote.Life
	payload []byte
}

// self is this life of the node.
func (n *Node) self() remote.Life { return remote.Life{Home: n.home, Epoch: n.numbers.lives} }

// peer gives what the node has with another one.
func (n *Node) peer(home ids.Home) *peerShell {
	if p := n.peers[home]; p != nil {
		return p
	}
	p := &peerShell{to: n.w.node(home), kept: remote.Kept{First: 1}, ends: make(map[remote.ConnID]*end)}
	n.peers[home] = p
	p.handed = n.box("from node "+home.String(), func(ev any) { n.links.handle(home, ev) })
	p.part = &part[*peerEvent, remote.Effect]{build: p.buildCore, do: p.carryOut, vital: vitalSend}
	startPart(n, kindPeer, "remote/"+home.String(), p.part)
	return p
}

// sortedPeers are the nodes that there is something with, in order.
func (n *Node) sortedPeers() []ids.Home { return slices.Sorted(maps.Keys(n.peers)) }

func (p *peerShell) post(ev remote.Event) { p.box.put(&peerEvent{ev: ev}) }

// buildCore makes a core of what the one before it had after its last step. Connections are closed, since it may not have written what it was to.
func (p *peerShell) buildCore(restart int) (core[*peerEvent, remote.Effect], []*peerEvent) {
	cfg := remote.DefaultConfig(p.n.self(), p.to.home)
	cfg.Random = p.n.w.rng.Int64N
	p.core = remote.Rebuild(cfg, p.kept, slices.Clone(p.waiting))
	if restart == 0 {
		return driven{p}, nil
	}
	for _, id := range slices.Sorted(maps.Keys(p.ends)) {
		p.ends[id].close()
		p.post(remote.Closed{Conn: id, Err: errBroke})
	}
	clear(p.ends)
	if p.up {
		p.up = false
		p.handed.put(remote.Down{Err: errBroke})
	}
	return driven{p}, []*peerEvent{{ev: remote.Timer{}}}
}

// vitalSend tells of a message that the core has not taken. Nobody says anything where another event is dropped: what was read is read again on another connection.
func vitalSend(ev *peerEvent) bool {
	_, sends := ev.ev.(remote.Send)
	return sends && !ev.done
}

// driven is the core as it is stepped: what a step has changed is kept before its effects are carried out.
type driven struct{ *peerShell }

func (p driven) Step(now int64, ev *peerEvent) (out []remote.Effect) {
	if ev.done {
		return nil
	}
	ev.done = true
	for _, f := range p.core.Step(now, ev.ev) {
		switch f := f.(type) {
		case *remote.Write:
			w := *f
			out = append(out, &w)
		case *remote.WriteAck:
			w := *f
			out = append(out, &w)
		case *remote.Deliver:
			p.handed.put(delivered{f.From, f.Payload})
		case remote.Notice:
			p.note(f)
			p.handed.put(f)
		case remote.Full, remote.Room:
		default:
			out = append(out, f)
		}
	}
	if s, ok := ev.ev.(remote.Send); ok && p.core.Waiting() > len(p.waiting) {
		p.waiting = append(p.waiting, s.Payload)
	}
	p.kept, p.waiting = p.core.Kept(), p.waiting[len(p.waiting)-p.core.Waiting():]
	return out
}

func (p *peerShell) note(n remote.Notice) {
	switch n.(type) {
	case remote.Up:
		p.up = true
	case remote.Down:
		p.up = false
	}
}

func (p *peerShell) carryOut(f remote.Effect) {
	switch f := f.(type) {
	case *remote.Write:
		p.write(f.Conn, remote.Received{Number: f.Number, Payload: f.Payload})
	case *remote.WriteAck:
		p.write(f.Conn, remote.AckReceived{Number: f.Number})
	case remote.WriteUse:
		p.write(f.Conn, remote.UseReceived{})
	case remote.WriteHello:
		p.write(f.Conn, remote.HelloReceived{Hello: f.Hello})
	case remote.Close:
		if e := p.ends[f.Conn]; e != nil {
			delete(p.ends, f.Conn)
			e.close()
		}
	case remote.Dial:
		p.dial()
	case remote.After:
		if p.timer != nil {
			p.timer.stop()
		}
		p.timer = p.after(f.Delay, &peerEvent{ev: remote.Timer{}})
	default:
		p.n.w.fail("a peer asks for a %T, which nobody does", f)
	}
}

func (p *peerShell) write(id remote.ConnID, ev remote.Event) {
	if e := p.ends[id]; e != nil {
		e.write(ev)
	}
}

// How long a dial takes, and how long it takes to give up.
const (
	dialMost    = 3 * time.Millisecond
	dialTimeout = 3 * time.Second
)

// dial makes a connection to the other node.
func (p *peerShell) dial() {
	p.n.dial(p.to, dialMost, func(err error) {
		if err != nil {
			p.post(remote.DialFailed{Err: err})
			return
		}
		mine, theirs := p.n.w.connect(p.n, p.to, "messages")
		p.opened(mine, true)
		p.to.peer(p.n.home).opened(theirs, false)
	})
}

// dial tells whether another node takes a connection, once that is known.
func (n *Node) dial(to *Node, most time.Duration, then func(err error)) {
	w, life := n.w, n.life
	known := func(err error) func() {
		return func() {
			if n.life == life {
				then(err)
			}
		}
	}
	w.after(w.between(100*time.Microsecond, most), func() {
		switch {
		case n.life != life:
		case !w.reaches(n, to) || to.off:
			w.after(int64(dialTimeout), known(errUnreachable))
		case !to.up || !n.up: // a node dials once its row is written
			then(errRefused)
		default:
			then(nil)
		}
	})
}

// opened gives the core a connection. What comes on it later the core finds in its mailbox behind that.
func (p *peerShell) opened(e *end, dialed bool) {
	p.last++
	id := p.last
	p.ends[id] = e
	e.take = func(ev any) {
		switch ev := ev.(type) {
		case remote.HelloReceived:
			ev.Conn = id
			p.post(ev)
		case remote.UseReceived:
			ev.Conn = id
			p.post(ev)
		case remote.Received:
			ev.Conn = id
			p.post(ev)
		case remote.AckReceived:
			ev.Conn = id
			p.post(ev)
		}
	}
	e.hungUp = func(err error) {
		delete(p.ends, id)
		p.post(remote.Closed{Conn: id, Err: err})
	}
	p.post(remote.Connected{Conn: id, Dialed: dialed})
}
