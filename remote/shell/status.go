package shell

import (
	"cmp"
	"slices"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/remote"
)

// Status is what a Hub has with one other node.
type Status struct {
	Home      ids.Home
	Life      remote.Life // Epoch 0: it was not met yet, or is fenced
	Connected bool        // a connection is in use
	Bytes     int64       // of messages that it has not acknowledged, and what keeping them costs
	Err       error       // if not: why the last one failed; nil: none did
}

// Peers lists the other nodes that messages were sent to or came from, by their homes.
func (h *Hub) Peers() []Status {
	h.mu.RLock()
	defer h.mu.RUnlock()
	out := make([]Status, 0, len(h.peers))
	for _, p := range h.peers {
		s := Status{Home: p.home, Life: p.met()}
		s.Bytes, s.Connected, s.Err = p.gate.state()
		out = append(out, s)
	}
	slices.SortFunc(out, func(a, b Status) int { return cmp.Compare(a.Home, b.Home) })
	return out
}

// note keeps what a notice says.
func (p *peer) note(n remote.Notice) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch n := n.(type) {
	case remote.Up:
		p.life = n.Peer
		p.gate.connected(true, nil)
	case remote.Down:
		p.gate.connected(false, n.Err)
	case remote.Restarted:
		p.life = n.Is
	case remote.Gone:
		p.life.Epoch = 0
	case remote.Superseded:
		p.gate.close(errs.New(errs.CodeShutdown, "node %v: life %d of this node has taken the place of %d", p.cfg.Self.Home, n.Epoch, p.cfg.Self.Epoch))
	}
}

// met is the life that the other node has.
func (p *peer) met() remote.Life {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.life
}
