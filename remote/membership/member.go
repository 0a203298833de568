package membership

import "mobula/remote"

// signal is what one source says of a life.
type signal uint8

const (
	silent signal = iota
	speaksFor
	against
)

// member is the latest life of another home: what speaks for it, and what against it.
type member struct {
	node      Node
	described bool // node has more than the life

	gossip  signal
	link    signal
	refused bool // nobody listens at its address
	left    bool

	// A heartbeat that was under way when doubt arose says nothing. So a life that is doubted beats if it has written two more.
	beat    uint64 // number of the last heartbeat, 0: none
	doubted uint64 // number of the last one when doubt arose, or of the first one
	beating bool

	load  uint64 // version of the last load
	state State  // as it was told
	why   Reason
	since int64
	plea  plea
}

// opinion is what follows from the signals. Nothing but the control plane's verdict makes more than that of them.
func (m *member) opinion() (State, Reason) {
	switch {
	case !m.described:
		return Unknown, NoReason
	case m.left:
		return Left, NoReason
	case m.refused:
		return Dead, Refused
	case m.gossip == against && m.link != speaksFor && !m.beating:
		return Dead, Unheard
	case m.gossip == against: // it lives, and this node does not hear it as it should
		return Suspect, Unheard
	case m.link == against:
		return Suspect, Disconnected
	case m.gossip == silent && m.link == silent && !m.beating: // its row in the table may be of long ago
		return Unknown, NoReason
	}
	return Alive, NoReason
}

// failed: the gossip has given it up.
func (m *member) failed() {
	if m.gossip != against {
		m.gossip = against
		m.doubt()
	}
}

// broken: its connection is gone.
func (m *member) broken() {
	if m.link != against {
		m.link = against
		m.doubt()
	}
}

// nobodyListens: its machine is there, and its process is not.
func (m *member) nobodyListens() {
	m.broken()
	if !m.refused {
		m.refused = true
		m.doubt()
	}
}

// doubt makes the heartbeats so far count for nothing.
func (m *member) doubt() { m.beating, m.doubted = false, m.beat }

// trust drops what speaks against the life, but for the gossip: it was heard of after that.
func (m *member) trust() {
	m.refused = false
	if m.link == against {
		m.link = silent
	}
}

// heartbeat counts a heartbeat.
func (m *member) heartbeat(number uint64) {
	if m.beat == 0 {
		m.doubted = number
	}
	m.beat = max(m.beat, number)
	if !m.beating && m.beat >= m.doubted+2 {
		m.beating = true
		m.trust()
	}
}

// of is the belief about a life, nil if what is heard of that life is stale: it was fenced, or a later one has been heard of. A life
// that is news takes the place of the one before.
func (c *Core) of(l remote.Life) *member {
	if l.Home == c.cfg.Self.Home || l.Epoch <= c.fenced[l.Home] {
		return nil
	}
	m := c.members[l.Home]
	if m != nil && m.node.Epoch >= l.Epoch {
		if m.node.Epoch > l.Epoch {
			return nil
		}
		return m
	}
	if m != nil {
		c.replaced(m)
	}
	m = &member{node: Node{Life: l}, since: c.now}
	c.members[l.Home] = m
	return m
}

// weigh changes what speaks for or against a life, and tells what follows.
func (c *Core) weigh(l remote.Life, change func(*member)) {
	if m := c.of(l); m != nil {
		change(m)
		state, why := m.opinion()
		c.become(m, state, why)
	}
}

// seen takes what the gossip has of a node.
func (c *Core) seen(n Node) {
	if n.Home == c.cfg.Self.Home {
		if n.Epoch > c.cfg.Self.Epoch {
			c.clash(n.Home, [2]string{c.cfg.Self.Addresses.Gossip, n.Addresses.Gossip})
		}
		return
	}
	c.weigh(n.Life, func(m *member) {
		if m.gossip == against { // it has said itself that it lives, after whatever was held against it
			m.trust()
		}
		m.gossip = speaksFor
		c.describe(m, n)
	})
}

// beat takes a node's row in the control plane's table.
func (c *Core) beat(ev Beat) {
	c.weigh(ev.Node.Life, func(m *member) {
		if !m.described { // else the gossip has as much, or more
			c.describe(m, ev.Node)
		}
		m.heartbeat(ev.Number)
	})
}

// describe notes what a node says of itself. If that has changed, those who were told before are told again.
func (c *Core) describe(m *member, n Node) {
	changed := m.described && m.node != n
	m.node, m.described = n, true
	if changed && m.state == Alive {
		c.emit(NodeUp{Node: n})
	}
}

// become tells that a life is believed to be in another state. One that nobody was told of begins with being alive.
func (c *Core) become(m *member, s State, why Reason) {
	was := m.state
	m.why = why
	if was == s || was == Unknown && s != Alive && s != Over {
		return
	}
	m.state, m.since = s, c.now
	c.living += lives(s) - lives(was)
	switch s {
	case Alive:
		c.emit(NodeUp{Node: m.node})
	case Suspect:
		c.emit(NodeSuspect{Life: m.node.Life, Why: why})
	case Dead:
		c.emit(NodeDead{Life: m.node.Life, Why: why})
	case Left:
		c.emit(NodeLeft{Life: m.node.Life})
	}
	c.doubt(m)
}

// replaced makes room for a later life of the same home.
func (c *Core) replaced(m *member) {
	if lives(m.state) > 0 {
		c.become(m, Dead, Replaced)
	}
	delete(c.doubts.lives, m.node.Home)
}

// lives counts a member in a state towards the size of the cluster.
func lives(s State) int {
	if s == Alive || s == Suspect {
		return 1
	}
	return 0
}
