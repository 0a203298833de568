package remote

import (
	"cmp"
	"slices"

	"mobula/internal/errs"
)

// meet learns which life of the other node is at the other end. What was meant for a life before is not for this one.
func (p *Peer) meet(l Life) {
	if l.Epoch == p.peer.Epoch {
		return
	}
	was := p.peer
	if was.Epoch != 0 { // else what waits is for whichever life there is
		dropped := p.reset()
		p.emit(Restarted{Was: was, Is: l, Dropped: dropped})
	}
	p.peer = l
}

// fence ends the other node's lives up to an epoch.
func (p *Peer) fence(epoch uint64) {
	if epoch <= p.fenced {
		return
	}
	p.fenced = epoch
	if p.peer.Epoch > epoch {
		return
	}
	if dropped := p.reset(); p.peer.Epoch != 0 || dropped > 0 {
		p.emit(Gone{Was: p.peer, Dropped: dropped})
	}
	p.peer.Epoch = 0
}

// reset drops what this node had with a life of the other, and the connections to it. It gives the number of messages.
func (p *Peer) reset() int {
	full, dropped := p.out.full, p.out.waiting.Len()
	p.out, p.in = outgoing{first: 1}, incoming{}
	if full {
		p.emit(Room{})
	}
	for _, c := range p.links.all() {
		if c.said = 0; c.heard {
			p.close(c, ErrStaleLife)
		}
	}
	return dropped
}

// superseded ends this life: the other node knows a later one.
func (p *Peer) superseded(epoch uint64) {
	p.over = true
	p.emit(Superseded{Epoch: epoch})
	waiting := p.out.waiting
	p.reset()
	for _, c := range p.links.all() { // on which the other node has said nothing
		p.close(c, ErrStaleLife)
	}
	for _, payload := range waiting.All() {
		p.refuse(payload)
	}
}

// refuse gives a message back that comes too late.
func (p *Peer) refuse(payload []byte) {
	p.emit(Refused{Payload: payload, Err: errs.New(errs.CodeShutdown, "node %v: a later life of this node has taken its place", p.cfg.Self.Home)})
}

// all gives the connections in order of their numbers.
func (l *links) all() []*link {
	out := make([]*link, 0, len(l.byID))
	for _, c := range l.byID {
		out = append(out, c)
	}
	slices.SortFunc(out, func(a, b *link) int { return cmp.Compare(a.id, b.id) })
	return out
}
