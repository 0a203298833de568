package transfer

import "slices"

// pull is what a fetch has asked one node for.
type pull struct {
	token    uint64
	fetch    *fetch
	holder   *holder
	link     *link // nil: it waits for a connection
	must     bool
	from     int64 // where it began
	limit    int64 // how far the holder may send
	share    int64 // bytes that it is counted as
	progress int64 // when something arrived last
}

// pull has a fetch ask a node.
func (c *Core) pull(f *fetch, h *holder, must bool, share int64) {
	p := &pull{token: c.token, fetch: f, holder: h, must: must, from: f.got, limit: min(f.got+share, f.size), share: share, progress: c.now}
	c.token++
	c.pulls[p.token] = p
	f.pull = p
	c.underWay += share
	c.peer(h.node).bytes += share
	c.connect(p)
}

// say puts a pull on a connection.
func (c *Core) say(l *link, p *pull) {
	if len(l.pulls) == 0 {
		l.heard = c.now
	}
	f := p.fetch
	p.link, p.progress = l, c.now
	l.pulls = append(l.pulls, p)
	c.emit(Expect{Conn: l.id, Token: p.token, Fetch: f.id(), Offset: f.got})
	c.emit(Write{Conn: l.id, Frame: Pull{
		Token: p.token, Object: f.object, Size: f.size, Offset: f.got, Limit: p.limit,
		More: c.needsMore(f), Must: p.must,
	}})
}

// needsMore tells whether other nodes may wait for a fetch, so that a node that has no more may be one of them. While nothing has come they are no hindrance,
// since they were sent on in the order in which they asked; but one that has lost its place in that order may be sent on to those behind it.
func (c *Core) needsMore(f *fetch) bool {
	if f.got == 0 {
		return f.lost
	}
	return len(c.sendsOf(f.object)) > 0
}

// drop forgets a pull.
func (c *Core) drop(p *pull) {
	delete(c.pulls, p.token)
	p.fetch.pull = nil
	if p.fetch.got > p.from {
		p.holder.tries = 0
	}
	c.underWay -= p.share
	c.peer(p.holder.node).bytes -= p.share
	if l := p.link; l != nil {
		l.pulls = slices.DeleteFunc(l.pulls, func(x *pull) bool { return x == p })
	}
	c.recheck = true
}

// lost ends a pull whose connection has.
func (c *Core) lost(p *pull, err error) {
	c.drop(p)
	p.fetch.lost = true
	p.holder.failed(c.cfg, c.now, err)
}

// refused goes on with another node.
func (c *Core) refused(l *link, r Refused) {
	p := c.pulls[r.Token]
	if p == nil || p.link != l {
		c.close(l, ErrProtocol)
		return
	}
	f, h := p.fetch, p.holder
	c.emit(Unexpect{Token: p.token})
	c.drop(p)
	switch r.Reason {
	case Busy:
		if p.must {
			h.failed(c.cfg, c.now, errBusy)
			return
		}
		h.busy = true
		f.hold(c.cfg.Self, r.Others...)
	case Failed:
		f.lost = true
		h.failed(c.cfg, c.now, errFailed)
	case Behind:
		h.out, h.err = true, errBehind
	default:
		f.lost = f.lost || len(c.sendsOf(f.object)) > 0 // else nobody waits
		h.out, h.lacks, h.err = true, true, errMissing
	}
}
