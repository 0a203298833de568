package remote

import (
	"fmt"
	"math"
)

// links are the connections between the two nodes.
type links struct {
	byID    map[ConnID]*link
	opening int   // how many have a deadline
	use     *link // the one in use
	since   int64 // when it came in use
}

// link is one of them.
type link struct {
	id       ConnID
	heard    bool   // the other node has said who it is
	works    bool   // something came on it while it was in use
	said     uint64 // what this node said that it had taken
	got      uint64 // what the other node had taken from this life
	deadline int64  // until it is in use; 0: it is, or was
}

func newLinks() links { return links{byID: make(map[ConnID]*link)} }

// deadline is when the next connection is given up that is not in use.
func (l *links) deadline() int64 {
	at := int64(math.MaxInt64)
	if l.opening == 0 {
		return at
	}
	for _, c := range l.byID {
		if c.deadline != 0 {
			at = min(at, c.deadline)
		}
	}
	return at
}

// opened takes the deadline off a connection that is in use, or gone.
func (l *links) opened(c *link) {
	if c.deadline != 0 {
		c.deadline = 0
		l.opening--
	}
}

// expire gives up the connections that did not come in use in time.
func (l *links) expire(p *Peer) {
	if l.opening == 0 {
		return
	}
	for _, c := range l.all() {
		if c.deadline != 0 && c.deadline <= p.now {
			p.close(c, ErrHandshake)
		}
	}
}

// decides tells whether this node says which connection is in use.
func (p *Peer) decides() bool { return p.cfg.Self.Home < p.cfg.Peer }

func (p *Peer) connected(ev Connected) {
	if ev.Dialed {
		p.dial.pending = false
	}
	if p.over {
		p.emit(Close{Conn: ev.Conn, Err: ErrStaleLife})
		return
	}
	p.links.opening++
	p.links.byID[ev.Conn] = &link{id: ev.Conn, said: p.in.last, deadline: p.now + int64(p.cfg.Handshake)}
	p.emit(WriteHello{Conn: ev.Conn, Hello: Hello{From: p.cfg.Self, To: p.cfg.Peer, Knows: p.peer.Epoch, Got: p.in.last}})
}

// hello checks who is at the other end, and learns what it has of this node.
func (p *Peer) hello(id ConnID, h Hello) {
	c := p.links.byID[id]
	switch {
	case c == nil:
		return
	case h.From.Home != p.cfg.Peer || h.To != p.cfg.Self.Home:
		p.close(c, fmt.Errorf("%w: node %v for node %v, want %v for %v", ErrOtherNode, h.From.Home, h.To, p.cfg.Peer, p.cfg.Self.Home))
		return
	case h.From.Epoch < p.peer.Epoch || h.From.Epoch <= p.fenced:
		p.close(c, fmt.Errorf("%w: epoch %d", ErrStaleLife, h.From.Epoch))
		return
	case c.heard:
		p.close(c, ErrHandshake)
		return
	case h.Knows > p.cfg.Self.Epoch:
		p.superseded(h.Knows)
		return
	}
	p.meet(h.From)
	if c.heard = true; h.Knows == p.cfg.Self.Epoch {
		c.got = h.Got
	}
	if p.decides() {
		p.emit(WriteUse{Conn: id})
		p.take(c)
	}
}

// used follows the node that decides.
func (p *Peer) used(id ConnID) {
	c := p.links.byID[id]
	switch {
	case c == nil:
	case p.decides() || !c.heard:
		p.close(c, ErrHandshake)
	default:
		p.take(c)
	}
}

// works takes note that something has come on the connection in use: when it breaks the other node is dialed at once.
func (p *Peer) works(c *link) {
	if !c.works {
		c.works = true
		p.dial.delay, p.dial.at = 0, 0
	}
}

// take uses a connection from now on: what waits is written on it, from the first message that the other node does not have.
func (p *Peer) take(c *link) {
	if c == p.links.use {
		return
	}
	was := p.links.use
	p.links.use, p.links.since = c, p.now
	p.links.opened(c)
	if was != nil {
		p.close(was, ErrReplaced)
	} else {
		p.emit(Up{Peer: p.peer})
	}
	if !p.acknowledged(c.got) {
		p.close(c, fmt.Errorf("%w: it has number %d, the last one sent is %d", ErrGap, c.got, p.out.next()-1))
		return
	}
	writes := make([]Write, p.out.waiting.Len())
	for i, payload := range p.out.waiting.All() {
		writes[i] = Write{Conn: c.id, Number: p.out.first + uint64(i), Payload: payload}
		p.emit(&writes[i])
	}
	if p.in.acked = c.said; p.in.acked < p.in.last {
		p.ack()
	}
}

// close ends a connection.
func (p *Peer) close(c *link, err error) {
	p.emit(Close{Conn: c.id, Err: err})
	p.lose(c, err)
}

func (p *Peer) closed(ev Closed) {
	if c := p.links.byID[ev.Conn]; c != nil {
		p.lose(c, ev.Err)
	}
}

// lose forgets a connection. One that never came in use, or on which nothing came then, is a dial that failed.
func (p *Peer) lose(c *link, err error) {
	delete(p.links.byID, c.id)
	if c.deadline != 0 || c == p.links.use && !c.works {
		p.dial.failed(p)
	}
	p.links.opened(c)
	if c == p.links.use {
		p.links.use = nil
		p.emit(Down{Peer: p.peer, Err: err})
	}
}
