package membership

import "math"

// ownLoad is this node's load, and when it may be gossiped.
type ownLoad struct {
	last   Report
	spread uint64 // version of what was gossiped last
	at     int64  // not before
}

// deadline is when the load is gossiped next.
func (o *ownLoad) deadline() int64 {
	if o.last.Version == o.spread {
		return math.MaxInt64
	}
	return o.at
}

// report takes a later load of this node. A load that was not gossiped yet is forgotten.
func (c *Core) report(r Report) {
	if r.Version > c.own.last.Version {
		c.own.last = r
	}
}

// spread has this node's load gossiped, if there is a later one and it is time.
func (c *Core) spread() {
	o := &c.own
	if o.deadline() > c.now {
		return
	}
	o.spread = o.last.Version
	o.at = c.now + int64(c.cfg.Loads.Interval(c.size(), len(o.last.Bytes)))
	c.emit(Spread{Load: Load{Life: c.cfg.Self.Life, Version: o.last.Version, Bytes: o.last.Bytes}})
}

// gossiped takes another node's load, if it is of the latest life and later than the last one.
func (c *Core) gossiped(l Load) {
	m := c.of(l.Life)
	if m == nil || l.Version <= m.load {
		return
	}
	m.load = l.Version
	c.emit(LoadReceived{Load: l})
}
