package transfer

import (
	"slices"

	"mobula/internal/ids"
)

type sendKey struct {
	to    ids.Home
	token uint64
}

// send is what another node pulls from here: what the store has served, or what has arrived of a fetch.
type send struct {
	sendKey
	object   Object
	size     int64
	link     *link
	relay    *fetch // it is fetched here; nil: the store was asked for it
	ready    bool   // the store has served it
	next     int64  // offset of the next chunk
	limit    int64  // how far it may go
	progress int64  // when something was sent or credited last
}

// pulled takes a pull on, or refuses it.
func (c *Core) pulled(l *link, p Pull) {
	k := sendKey{l.node, p.Token}
	if c.sends[k] != nil {
		c.close(l, ErrProtocol)
		return
	}
	f := c.fetches[p.Object]
	switch {
	case c.peer(l.node).sends >= c.cfg.PeerPulls:
		c.deny(l, p, Failed) // it asks again in a while
	case f != nil && f.size != p.Size:
		c.deny(l, p, Missing)
	case f != nil && f.waitsFor(l.node, p):
		c.deny(l, p, Behind)
	case p.Size > c.cfg.Small && !p.Must && c.sending(p.Object, l.node):
		c.deny(l, p, Busy)
	default:
		c.accept(&send{sendKey: k, object: p.Object, size: p.Size, link: l, relay: f, next: p.Offset, limit: p.Limit, progress: c.now})
	}
}

// waitsFor tells whether a node that pulls what is fetched here may itself have to be waited for: it has more, or as much while others may wait for it, or
// it is asked already.
func (f *fetch) waitsFor(node ids.Home, p Pull) bool {
	return p.Offset > f.got || p.More && p.Offset == f.got || f.pull != nil && f.pull.holder.node == node
}

func (c *Core) deny(l *link, p Pull, why Reason) {
	r := Refused{Token: p.Token, Reason: why}
	if why == Busy {
		r.Others = c.sendOn(p.Object, l.node)
	}
	c.emit(Write{Conn: l.id, Frame: r})
}

func (c *Core) accept(s *send) {
	c.sends[s.sendKey] = s
	c.peer(s.to).sends++
	c.join(s)
	if len(s.link.sends) == 0 {
		s.link.said = c.now
	}
	s.link.sends = append(s.link.sends, s)
	if s.relay == nil {
		c.emit(Export{To: s.to, Token: s.token, Object: s.object})
	}
	c.schedule(s.link)
}

// credited lets a send go on.
func (c *Core) credited(l *link, cr Credit) {
	s := c.sends[sendKey{l.node, cr.Token}]
	if s == nil {
		return // it has ended meanwhile
	}
	s.limit, s.progress = max(s.limit, cr.Limit), c.now
	c.schedule(l)
}

// served takes the store's answer.
func (c *Core) served(ev Served) {
	s := c.sends[sendKey{ev.To, ev.Token}]
	switch {
	case s == nil || s.relay != nil:
		c.emit(Release{To: ev.To, Token: ev.Token})
	case ev.Failed && !ev.Missing:
		c.refuse(s, Failed)
	case ev.Failed, ev.Size != s.size:
		c.refuse(s, Missing)
	default:
		s.ready, s.progress = true, c.now
		c.schedule(s.link)
	}
}

// refuse ends a send before all of it was sent.
func (c *Core) refuse(s *send, why Reason) {
	c.emit(Write{Conn: s.link.id, Frame: Refused{Token: s.token, Reason: why}})
	c.endSend(s)
}

// endSend forgets a send. Nobody reads what the store has served for it.
func (c *Core) endSend(s *send) {
	delete(c.sends, s.sendKey)
	c.peer(s.to).sends--
	c.part(s)
	s.link.sends = slices.DeleteFunc(s.link.sends, func(x *send) bool { return x == s })
	if s.relay == nil {
		c.emit(Release{To: s.to, Token: s.token})
	}
}

// schedule has the next chunk written on a connection, of one send after the other.
func (c *Core) schedule(l *link) {
	if l.writing != nil || l.closing {
		return
	}
	for i, s := range l.sends {
		n := min(ChunkSize, s.size-s.next)
		if s.next+n > min(s.there(), s.limit) {
			continue
		}
		w := WriteChunk{Conn: l.id, To: s.to, Chunk: Chunk{Token: s.token, Offset: s.next, Size: int(n)}, Unsummed: true}
		if f := s.relay; f != nil {
			sum := f.sums[s.next/ChunkSize]
			w.Relay, w.Chunk.Sum, w.Unsummed = f.id(), sum.crc, !sum.known
			f.readers++
		}
		l.writing, l.reads = s, s.relay
		l.sends = append(slices.Delete(l.sends, i, i+1), s)
		s.next += n
		c.emit(w)
		return
	}
}

// there is how much of the object can be sent.
func (s *send) there() int64 {
	switch {
	case s.relay != nil && s.relay.over:
		return 0 // the fetch is to end: the store is asked
	case s.relay != nil:
		return s.relay.got
	case s.ready:
		return s.size
	}
	return 0
}

func (c *Core) chunkWritten(id ConnID) {
	l := c.links[id]
	if l == nil {
		return
	}
	s := l.writing
	l.said, s.progress = c.now, c.now
	if s.next == s.size && c.sends[s.sendKey] == s {
		c.endSend(s)
	}
	c.written(l)
	c.schedule(l)
}

// written ends the reading of a chunk.
func (c *Core) written(l *link) {
	f := l.reads
	l.writing, l.reads = nil, nil
	if f != nil {
		f.readers--
		c.finish(f)
	}
}
