package remote

import "math"

// dialing is when the other node is dialed.
type dialing struct {
	pending bool  // Dial was asked for and not answered
	delay   int64 // after the next failure; 0: RetryMin
	at      int64 // not before
}

// wants tells whether a connection is missing.
func (d *dialing) wants(p *Peer) bool {
	return p.out.waiting.Len() > 0 && p.links.use == nil && len(p.links.byID) == 0 && !d.pending && !p.over
}

// deadline is when the other node is dialed next.
func (d *dialing) deadline(p *Peer) int64 {
	if d.wants(p) {
		return d.at
	}
	return math.MaxInt64
}

// seek dials the other node, if something waits for it and it is time.
func (p *Peer) seek() {
	if p.dial.wants(p) && p.dial.at <= p.now {
		p.dial.pending = true
		p.emit(Dial{})
	}
}

// failed puts the next dial off, twice as long as the one before, and by chance up to half as long again.
func (d *dialing) failed(p *Peer) {
	d.delay = min(max(2*d.delay, int64(p.cfg.RetryMin)), int64(p.cfg.RetryMax))
	d.at = p.now + d.delay
	if p.cfg.Random != nil {
		d.at += p.cfg.Random(d.delay/2 + 1)
	}
}

func (p *Peer) dialFailed() {
	p.dial.pending = false
	p.dial.failed(p)
}
