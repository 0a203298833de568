package transfer

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"mobula/internal/ids"
)

// peer is another node as this one pulls from it.
type peer struct {
	node    ids.Home
	links   []*link // dialed, and open
	dialing int
	waiting []*pull // for a connection
	bytes   int64   // under way from it
	sends   int     // what it pulls from here
}

// link is a connection. This node pulls on it if it has dialed; else the other one does, and this one sends.
type link struct {
	id      ConnID
	node    ids.Home
	dialed  bool
	closing bool  // Closed is to come
	heard   int64 // when something was last heard
	pulls   []*pull

	sends   []*send // the next to be looked at first
	writing *send   // whose chunk is being written
	reads   *fetch  // in whose memory that is; nil: in the store's
	said    int64   // when something was last written
}

func (c *Core) peer(node ids.Home) *peer {
	p := c.peers[node]
	if p == nil {
		p = &peer{node: node}
		c.peers[node] = p
	}
	return p
}

// connect has a pull said on the connection to its node that has the fewest. While all have some, one more is dialed.
func (c *Core) connect(p *pull) {
	pr := c.peer(p.holder.node)
	l := pr.idlest()
	if l == nil {
		pr.waiting = append(pr.waiting, p)
	}
	wanted := len(pr.waiting) > pr.dialing || l != nil && len(l.pulls) > 0 && pr.dialing == 0
	if wanted && len(pr.links)+pr.dialing < c.cfg.Conns {
		pr.dialing++
		c.emit(Dial{Peer: pr.node})
	}
	if l != nil {
		c.say(l, p)
	}
}

func (pr *peer) idlest() *link {
	if len(pr.links) == 0 {
		return nil
	}
	return slices.MinFunc(pr.links, func(a, b *link) int { return cmp.Compare(len(a.pulls), len(b.pulls)) })
}

func (c *Core) connected(ev Connected) {
	l := &link{id: ev.Conn, node: ev.Peer, dialed: ev.Dialed, heard: c.now, said: c.now}
	c.links[l.id] = l
	if !l.dialed {
		return
	}
	pr := c.peer(ev.Peer)
	pr.dialing = max(0, pr.dialing-1) // an earlier core may have dialed
	pr.links = append(pr.links, l)
	waiting := pr.waiting
	pr.waiting = nil
	for _, p := range waiting {
		c.say(pr.idlest(), p)
	}
}

func (c *Core) dialFailed(ev DialFailed) {
	pr := c.peer(ev.Peer)
	if pr.dialing = max(0, pr.dialing-1); pr.dialing > 0 {
		return
	}
	waiting := pr.waiting // there is no other connection, else nothing would wait
	pr.waiting = nil
	for _, p := range waiting {
		c.lost(p, ev.Err)
	}
}

// close ends a connection. What is on it waits for Closed: until then its memory is in use.
func (c *Core) close(l *link, err error) {
	if l.closing {
		return
	}
	l.closing = true
	c.leave(l)
	c.emit(Close{Conn: l.id, Err: err})
}

// leave has no pull be said on a connection any more.
func (c *Core) leave(l *link) {
	if pr := c.peers[l.node]; pr != nil {
		pr.links = slices.DeleteFunc(pr.links, func(x *link) bool { return x == l })
	}
}

func (c *Core) closed(ev Closed) {
	l := c.links[ev.Conn]
	if l == nil {
		return
	}
	delete(c.links, l.id)
	c.leave(l)
	for _, p := range slices.Clone(l.pulls) {
		c.emit(Unexpect{Token: p.token})
		c.lost(p, ev.Err)
	}
	for _, s := range slices.Clone(l.sends) {
		c.endSend(s)
	}
	c.written(l)
}

// expire closes a connection that is of no use any more, and says on one that is that this node lives.
func (c *Core) expire(l *link) {
	switch {
	case l.closing || c.due(l) > c.now:
	case l.dialed && len(l.pulls) == 0:
		c.close(l, ErrIdle)
	case l.dialed && l.heard+int64(c.cfg.Silence) <= c.now:
		c.close(l, ErrSilent)
	case l.dialed, l.stalls(c.cfg) <= c.now:
		c.close(l, ErrStalled)
	default:
		l.said = c.now
		c.emit(Write{Conn: l.id, Frame: Alive{}})
	}
}

// due is when expire has something to do.
func (c *Core) due(l *link) int64 {
	switch {
	case l.closing:
		return math.MaxInt64
	case l.dialed && len(l.pulls) == 0:
		return l.heard + int64(c.cfg.Idle)
	case l.dialed:
		at := l.heard + int64(c.cfg.Silence)
		for _, p := range l.pulls {
			at = min(at, p.progress+int64(c.cfg.Stall))
		}
		return at
	case len(l.sends) == 0 || l.writing != nil: // the shell bounds a write
		return math.MaxInt64
	default:
		return l.said + int64(c.cfg.Alive)
	}
}

// stalls is when the first receiver that gives no credit is given up.
func (l *link) stalls(cfg Config) int64 {
	at := int64(math.MaxInt64)
	for _, s := range l.sends {
		if s.next >= s.limit {
			at = min(at, s.progress+int64(cfg.Stall))
		}
	}
	return at
}

// gone ends everything with a node that is dead.
func (c *Core) gone(node ids.Home) {
	for _, f := range c.order {
		if h := f.holder(node); h != nil {
			h.out, h.err = true, ErrGone
		}
	}
	for _, l := range sorted(c.links) {
		if l.node == node {
			c.close(l, ErrGone)
		}
	}
	if pr := c.peers[node]; pr != nil {
		waiting := pr.waiting
		pr.waiting = nil
		for _, p := range waiting {
			c.lost(p, ErrGone)
		}
	}
	for _, a := range c.of {
		a.leave(node)
	}
	c.recheck = true
}

// sorted gives the values of a map by key, so that the same events have the same effects.
func sorted[K cmp.Ordered, V any](m map[K]V) []V {
	out := make([]V, 0, len(m))
	for _, k := range slices.Sorted(maps.Keys(m)) {
		out = append(out, m[k])
	}
	return out
}
