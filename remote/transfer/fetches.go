package transfer

import (
	"fmt"
	"math"
	"slices"

	"mobula/objectstore/spill"
)

// fetch is the transfer of one object to this node. It waits for its turn or for a holder, or has a pull, or is over and lingers until nobody
// reads its memory any more.
type fetch struct {
	ids     []FetchID // more than one: the object was asked for again meanwhile
	object  Object
	size    int64
	got     int64      // what has arrived, from the beginning on
	sums    []checksum // of the chunks
	holders []*holder
	pull    *pull
	lost    bool  // a node that was to send it has failed
	at      int64 // when there is something to do; MaxInt64: nothing is due
	over    bool
	err     error // why it failed
	readers int   // chunks that are written out of its memory
}

// checksum is a chunk's, as whoever has sent it said.
type checksum struct {
	crc   uint32
	known bool // else it came on a connection without checksums
}

func (f *fetch) id() FetchID { return f.ids[0] }

// fetch begins a fetch, or adds to the one that is under way.
func (c *Core) fetch(ev Fetch) {
	if f := c.fetches[ev.Object]; f != nil {
		f.ids = append(f.ids, ev.ID)
		f.hold(c.cfg.Self, ev.From...)
		c.recheck = true
		return
	}
	f := &fetch{ids: []FetchID{ev.ID}, object: ev.Object, size: ev.Size, at: math.MaxInt64}
	f.hold(c.cfg.Self, ev.From...)
	c.fetches[f.object] = f
	c.order = append(c.order, f)
	c.recheck = true
	if f.size == 0 {
		c.end(f, nil)
	}
}

func (c *Core) sources(ev Sources) {
	if f := c.fetches[ev.Object]; f != nil {
		f.hold(c.cfg.Self, ev.On...)
		c.recheck = true
	}
}

// begin has the fetches pull that may, in order.
func (c *Core) begin() {
	for c.recheck {
		c.recheck = false // a fetch that ends meanwhile makes room
		for _, f := range slices.Clone(c.order) {
			if f.pull == nil && !f.over {
				c.beginOne(f)
			}
		}
	}
}

// leastShare is what a pull counts as at least: however small the objects are, the pulls under way are bounded, and so is what they cost whom they are asked of.
const leastShare = 4 << 10

func (c *Core) beginOne(f *fetch) {
	h, must, at := f.next(c.now)
	f.at = at
	switch {
	case h == nil && at == math.MaxInt64:
		c.end(f, f.noHolder())
	case h != nil:
		share := max(min(c.cfg.Window, f.size-f.got), leastShare)
		if c.underWay+share <= c.cfg.AllBytes && c.peer(h.node).bytes+share <= c.cfg.PeerBytes {
			c.pull(f, h, must, share)
		}
	}
}

// chunkRead counts a chunk that is in place.
func (c *Core) chunkRead(ev ChunkRead) {
	l, p := c.hear(ev.Conn), c.pulls[ev.Chunk.Token]
	if p == nil {
		return
	}
	f := p.fetch
	f.got += int64(ev.Chunk.Size)
	f.sums = append(f.sums, checksum{ev.Chunk.Sum, !ev.Unsummed})
	p.progress = c.now
	if f.got == f.size {
		c.emit(Unexpect{Token: p.token})
		c.drop(p)
		c.end(f, nil)
		return
	}
	if l != nil && p.limit < f.size && p.limit-f.got <= c.cfg.Window/2 {
		p.limit = min(f.size, f.got+c.cfg.Window)
		c.emit(Write{Conn: l.id, Frame: Credit{Token: p.token, Limit: p.limit}})
	}
	for _, s := range c.sendsOf(f.object) {
		c.schedule(s.link)
	}
}

// noMemory ends a fetch whose memory cannot be had: no other holder changes that. The connection is closed, since chunks of it are on their way.
func (c *Core) noMemory(ev NoMemory) {
	p := c.pulls[ev.Token]
	if p == nil {
		return
	}
	c.emit(Unexpect{Token: p.token})
	c.drop(p)
	c.close(p.link, ev.Err)
	c.end(p.fetch, ev.Err)
}

// end ends a fetch.
func (c *Core) end(f *fetch, err error) {
	f.over, f.err = true, err
	f.at = c.now + int64(c.cfg.Linger)
	c.finish(f)
}

// finish says that a fetch is over, once its memory is not read any more. Those to whom it is relayed get the rest from the store, or hear that there is none.
func (c *Core) finish(f *fetch) {
	if !f.over || f.readers > 0 {
		return
	}
	delete(c.fetches, f.object)
	c.order = slices.DeleteFunc(c.order, func(x *fetch) bool { return x == f })
	c.emit(Finish{Fetches: f.ids, Err: f.err})
	for _, s := range c.sendsOf(f.object) {
		if s.relay == f { // else it was asked for before there was a fetch
			s.relay = nil
			c.emit(Export{To: s.to, Token: s.token, Object: s.object})
		}
	}
}

// linger cuts off receivers that are too slow for the end of a fetch to wait for them.
func (c *Core) linger(f *fetch) {
	if !f.over || f.at > c.now {
		return
	}
	f.at = math.MaxInt64
	for _, l := range sorted(c.links) {
		if l.reads == f {
			c.close(l, ErrStalled)
		}
	}
}

// noHolder says of each node why it cannot send the object.
func (f *fetch) noHolder() error {
	err, lacking := fmt.Errorf("%w: object %v", ErrNoHolder, f.object.ID), true
	for _, h := range f.holders {
		err = fmt.Errorf("%w; node %v: %w", err, h.node, h.err)
		lacking = lacking && h.lacks
	}
	if lacking {
		err = fmt.Errorf("%w: %w", spill.ErrMissing, err)
	}
	return err
}
