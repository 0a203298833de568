package model

import "slices"

// belief is what a node has of another. The zero value is what all have at the beginning. There are many: the largest runs have one for each two nodes.
type belief struct {
	since       int64
	incarnation uint32
	count       uint32 // suspicions so far
	standing    standing
	confirmed   uint8                       // of the present suspicion
	by          [maxConfirmations + 1]int32 // who suspects it
}

// of is what a node has of another.
func (g *Gossip) of(n, other int32) *belief {
	all := g.beliefs[other]
	if all == nil {
		all = make([]belief, len(g.nodes))
		g.beliefs[other] = all
		g.touched = append(g.touched, other)
	}
	return &all[n]
}

// stands is what a node has of another, for reading.
func (g *Gossip) stands(n, other int32) standing {
	if all := g.beliefs[other]; all != nil {
		return all[n].standing
	}
	return alive
}

// hear takes a message.
func (g *Gossip) hear(n int32, m message) {
	b := g.of(n, m.about)
	switch {
	case m.about == n:
		if m.says != alive && m.incarnation >= b.incarnation {
			g.refute(n, b, m.incarnation)
		}
	case m.says == alive:
		g.revive(n, b, m)
	case m.incarnation < b.incarnation:
	case m.says == suspected:
		g.suspect(n, b, m)
	case b.standing != dead:
		g.giveUp(n, b, m)
	}
}

// refute tells all that this node lives.
func (g *Gossip) refute(n int32, b *belief, accused uint32) {
	b.incarnation = max(b.incarnation, accused) + 1
	g.late(&g.nodes[n], 1)
	g.tell(n, message{about: n, incarnation: b.incarnation, says: alive})
}

// revive takes it that a node lives.
func (g *Gossip) revive(n int32, b *belief, m message) {
	if m.incarnation <= b.incarnation {
		return
	}
	was := b.standing
	b.incarnation, b.standing, b.since = m.incarnation, alive, g.now
	g.tell(n, m)
	if was == dead {
		g.change(n, m.about, true)
	}
}

// suspect begins to suspect a node, or confirms that.
func (g *Gossip) suspect(n int32, b *belief, m message) {
	switch b.standing {
	case dead:
		return
	case suspected:
		if int(b.confirmed) >= g.cfg.Rules.confirmations(len(g.nodes)) || slices.Contains(b.by[:b.confirmed+1], m.from) {
			return
		}
		b.confirmed++
		b.by[b.confirmed] = m.from
		g.tell(n, m)
		shortest, _ := g.cfg.Rules.suspicion(len(g.nodes))
		if g.now >= b.since+int64(shortest) { // else it is looked at then
			g.look(n, m.about, b, max(g.now, g.ends(b)))
		}
		return
	}
	b.incarnation, b.standing, b.since, b.confirmed = m.incarnation, suspected, g.now, 0
	b.by[0] = m.from
	b.count++
	g.tell(n, m)
	shortest, _ := g.cfg.Rules.suspicion(len(g.nodes))
	g.look(n, m.about, b, g.now+int64(shortest))
}

// ends is when a suspicion is over, if nobody else confirms it.
func (g *Gossip) ends(b *belief) int64 {
	shortest, longest := g.cfg.Rules.suspicion(len(g.nodes))
	return b.since + int64(lasts(int(b.confirmed), g.cfg.Rules.confirmations(len(g.nodes)), shortest, longest))
}

// look has a suspicion looked at then.
func (g *Gossip) look(n, other int32, b *belief, at int64) {
	g.at(event{at: at, do: expire, node: n, other: other, count: b.count})
}

// expire gives a node up that nothing was heard of, if it is time.
func (g *Gossip) expire(ev event) {
	b := g.of(ev.node, ev.other)
	if b.standing != suspected || b.count != ev.count {
		return
	}
	if at := g.ends(b); at > g.now {
		g.look(ev.node, ev.other, b, at)
		return
	}
	g.giveUp(ev.node, b, message{about: ev.other, from: ev.node, incarnation: b.incarnation, says: dead})
}

// giveUp takes it that a node is dead.
func (g *Gossip) giveUp(n int32, b *belief, m message) {
	b.incarnation, b.standing, b.since = m.incarnation, dead, g.now
	g.tell(n, m)
	g.change(n, m.about, false)
}

// tell has a node gossip a message.
func (g *Gossip) tell(n int32, m message) {
	g.nodes[n].queue.add(m)
	g.tick(n)
}

func (g *Gossip) change(n, other int32, up bool) {
	g.told(Change{At: g.now, Node: int(n), Other: int(other), Up: up})
}
