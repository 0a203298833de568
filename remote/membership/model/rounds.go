package model

import (
	"slices"
	"time"
)

// next is the first of a node's ticks after now.
func (g *Gossip) next(phase int64, every time.Duration) int64 {
	if g.now < phase {
		return phase
	}
	return g.now + int64(every) - (g.now-phase)%int64(every)
}

// shuffle gives a node another order of its probes: every stride-th node, from a first one. The stride has no divisor in common with the number of nodes, so
// that each node comes once.
func (g *Gossip) shuffle(n *node) {
	count := int32(len(g.nodes))
	n.turn, n.first, n.stride = 0, g.random.Int32N(count), 1
	for try := 0; count > 2 && try < 50; try++ {
		if s := 1 + g.random.Int32N(count-1); gcd(s, count) == 1 {
			n.stride = s
			return
		}
	}
}

func gcd(a, b int32) int32 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// probe asks the next node whether it lives.
func (g *Gossip) probe(n *node, self int32) {
	r := g.cfg.Rules
	count := int32(len(g.nodes))
	for range 2 * count {
		if n.turn >= count {
			g.shuffle(n)
		}
		target := int32((int64(n.first) + int64(n.turn)*int64(n.stride)) % int64(count))
		n.turn++
		if target == self || g.stands(self, target) == dead {
			continue
		}
		said, bytes := n.queue.take(r.Packet-ping, r.retransmits(len(g.nodes)), g.cfg.Meta)
		if g.stands(self, target) == suspected { // so that it can refute at once
			m := message{about: target, from: self, incarnation: g.of(self, target).incarnation, says: suspected}
			said, bytes = append(said, m), bytes+m.size(0)
		}
		g.send(self, target, said, bytes+ping)
		if g.answers(self, target) && g.answers(target, self) {
			other := &g.nodes[target]
			said, bytes := other.queue.take(r.Packet-ping, r.retransmits(len(g.nodes)), g.cfg.Meta)
			g.send(target, self, said, bytes+ping)
			g.late(n, -1)
			break
		}
		wait := r.Probe * time.Duration(n.awareness+1)
		g.at(event{at: g.now + int64(wait), do: probed, node: self, other: target, since: g.now})
		return
	}
	g.at(event{at: g.next(n.phase[0], r.Probe), do: probe, node: self})
}

// probed suspects a node that has not answered, neither this node nor one of the others that it asked. Those say so, if there was time for it; where they do not,
// this node may be the one that is late.
func (g *Gossip) probed(n *node, ev event) {
	r := g.cfg.Rules
	heard := g.answers(ev.node, ev.other) && g.answers(ev.other, ev.node)
	asked, said := 0, 0
	for _, helper := range g.some(ev.node, ev.other, r.Indirect, func(s standing, _ int64) bool { return s == alive }) {
		asked++
		if !g.answers(ev.node, helper) || !g.answers(helper, ev.node) {
			continue
		}
		heard = heard || g.answers(helper, ev.other) && g.answers(ev.other, helper)
		if g.now-ev.since > 2*int64(r.ProbeTimeout)+3*int64(g.cfg.Latency) {
			said++
		}
	}
	switch {
	case heard:
		g.late(n, -1)
	case asked > 0:
		g.late(n, asked-said)
	default:
		g.late(n, 1)
	}
	if !heard {
		b := g.of(ev.node, ev.other)
		g.hear(ev.node, message{about: ev.other, from: ev.node, incarnation: b.incarnation, says: suspected})
	}
	// A tick that fell into the probe begins the next one at once.
	g.at(event{at: max(g.now, min(g.next(n.phase[0], r.Probe), ev.since+int64(r.Probe))), do: probe, node: ev.node})
}

// late changes how late a node believes itself to be.
func (g *Gossip) late(n *node, by int) {
	n.awareness = min(max(0, n.awareness+by), g.cfg.Rules.Awareness-1)
}

// some draws up to k others, of whom the node believes something.
func (g *Gossip) some(self, not int32, k int, fits func(s standing, since int64) bool) []int32 {
	count := int32(len(g.nodes))
	out := make([]int32, 0, k)
	consider := func(x int32) {
		if x == self || x == not || slices.Contains(out, x) {
			return
		}
		var b belief
		if all := g.beliefs[x]; all != nil {
			b = all[self]
		}
		if fits(b.standing, b.since) {
			out = append(out, x)
		}
	}
	if count < 3*int32(k) { // few: each is considered
		for _, x := range g.random.Perm(int(count)) {
			if len(out) < k {
				consider(int32(x))
			}
		}
		return out
	}
	for try := int32(0); try < 3*count && len(out) < k; try++ {
		consider(g.random.Int32N(count))
	}
	return out
}

// tick has a node gossip at its next round.
func (g *Gossip) tick(self int32) {
	n := &g.nodes[self]
	if !n.ticking && !n.queue.empty() {
		n.ticking = true
		g.at(event{at: g.next(n.phase[1], g.cfg.Rules.Gossip), do: gossip, node: self})
	}
}

// gossip sends what waits to a few nodes.
func (g *Gossip) gossip(n *node, self int32) {
	r := g.cfg.Rules
	n.ticking = false
	for _, to := range g.some(self, self, r.GossipNodes, func(s standing, since int64) bool {
		return s != dead || g.now-since <= int64(r.GossipToTheDead)
	}) {
		said, bytes := n.queue.take(r.Packet, r.retransmits(len(g.nodes)), g.cfg.Meta)
		if len(said) == 0 {
			break
		}
		g.send(self, to, said, bytes)
	}
	g.tick(self)
}

// exchange has two nodes tell each other all that they believe. Whom the other has given up a node suspects first.
func (g *Gossip) exchange(self int32) {
	r := g.cfg.Rules
	count := len(g.nodes)
	for _, to := range g.some(self, self, 1, func(s standing, _ int64) bool { return s == alive }) {
		if !g.answers(self, to) || !g.answers(to, self) {
			continue
		}
		for _, n := range []int32{self, to} {
			g.nodes[n].packets += 2
			g.nodes[n].bytes += uint64(count * (80 + g.cfg.Meta))
		}
		mine, theirs := g.state(self), g.state(to)
		for _, m := range mine {
			m.from = to
			g.hear(to, m)
		}
		for _, m := range theirs {
			m.from = self
			g.hear(self, m)
		}
	}
	g.at(event{at: g.now + int64(r.exchange(count)), do: exchange, node: self})
}

// state is what a node believes of those of whom anything was ever said.
func (g *Gossip) state(n int32) []message {
	out := make([]message, 0, len(g.touched))
	for _, other := range g.touched {
		b := g.beliefs[other][n]
		says := b.standing
		if says == dead {
			says = suspected
		}
		out = append(out, message{about: other, incarnation: b.incarnation, says: says})
	}
	return out
}
