package remote

// Kept is what has to outlive a Peer, besides the messages that wait: all but the connections.
type Kept struct {
	Peer   Life   // the other node; Epoch 0: it was not met yet, or is fenced
	Fenced uint64 // its lives up to this one are dead
	Over   bool   // this life is
	Full   bool   // senders were asked to wait
	First  uint64 // number of the first message that waits
	Taken  uint64 // of the last one that was taken from the other node
}

// Kept is what has to outlive the core.
func (p *Peer) Kept() Kept {
	return Kept{Peer: p.peer, Fenced: p.fenced, Over: p.over, Full: p.out.full, First: p.out.first, Taken: p.in.last}
}

// Waiting is the number of messages that the other node has not acknowledged. They are those that were sent last, in order, without the refused ones.
func (p *Peer) Waiting() int { return p.out.waiting.Len() }

// Rebuild makes a core that goes on where another one was after a step. Its connections must have been closed.
func Rebuild(cfg Config, k Kept, waiting [][]byte) *Peer {
	p := NewPeer(cfg)
	p.peer, p.fenced, p.over = k.Peer, k.Fenced, k.Over
	p.out.first, p.out.full, p.in.last = k.First, k.Full, k.Taken
	for _, payload := range waiting {
		p.out.waiting.Push(payload)
		p.out.bytes += int64(len(payload))
	}
	return p
}
