package objectstore

import (
	"mobula/internal/ids"
	"mobula/objectstore/alloc"
)

// Each job's processes have a file of their own, made when it is first needed. What another job's file had warm where a block is
// cut is given back there first, so that no page has memory twice: decision 0016.

// owner is whose file a demand is served from.
func (c *Core) owner(d *demand) alloc.Owner {
	switch {
	case d.pack != nil:
		return alloc.Owner(d.pack.job)
	case d.o != nil:
		return alloc.Owner(d.o.job)
	}
	return alloc.Owner(d.job)
}

// punchTaken gives back what the last allocation took from other owners. A part to which a reservation brings memory is backed when that ends.
func (c *Core) punchTaken() {
	var out []alloc.Owned
	for _, t := range c.alloc.Taken() {
		out = append(out, c.settled(t)...)
	}
	if len(out) > 0 {
		c.emit(Punch{out})
	}
}

// exchange serves a demand while no memory can be reserved, and none of its owner's own is free: what others have warm is given back, and as
// much is reserved anew. Where that fails it is tried again after a while, and until then the demand waits for what others let go of.
func (c *Core) exchange(d *demand) (alloc.Block, bool) {
	warm, n := c.alloc.Warm(), (d.need+alloc.Page-1)&^(alloc.Page-1)
	if warm < alloc.Page || c.now < d.exchangeAt {
		return alloc.Block{}, false
	}
	b, ok := c.alloc.Alloc(c.owner(d), d.need, false)
	if !ok || c.held(d, b) {
		return alloc.Block{}, false
	}
	c.punchTaken()
	left := c.alloc.Warm() // it is less by what the block took
	if rs := c.alloc.Release(left-min(n, left), n); len(rs) > 0 {
		c.emit(Punch{rs})
	}
	d.exact, d.exchanging = true, true
	return b, true
}

// held tells whether memory is on its way to a part of a block just cut, in another owner's file, and then gives the block back: its
// demand waits for the reservation's end.
func (c *Core) held(d *demand, bs ...alloc.Block) bool {
	for _, b := range bs {
		d.held = d.held || c.pending(b.Owner, c.alloc.Span(b))
	}
	if d.held {
		c.punchTaken()
		for _, b := range bs {
			c.freeBlock(b)
		}
	}
	return d.held
}

// punchLoose gives back what a writer that gave up may have brought to where a reservation that has ended was on its way, and has brought
// nothing that counts. What is in use now is looked at when it is given back.
func (c *Core) punchLoose(r *reservation) {
	var out []alloc.Owned
	for _, x := range r.ranges {
		for _, loose := range c.alloc.Loose(alloc.Owned{Owner: r.owner, Range: x}) {
			out = append(out, c.settled(loose)...)
		}
	}
	if len(out) > 0 {
		c.emit(Punch{out})
	}
}

// pending tells whether a reservation for another owner than o is under way that meets the range.
func (c *Core) pending(o alloc.Owner, r alloc.Range) bool {
	if c.reserving == 0 {
		return false
	}
	for _, j := range c.jobs {
		if v, ok := j.(*reservation); ok && v.owner != o {
			for _, x := range v.ranges {
				if x.Off < r.End() && r.Off < x.End() {
					return true
				}
			}
		}
	}
	return false
}

// settled lists the parts of an owner's range to which no memory is on its way.
func (c *Core) settled(r alloc.Owned) []alloc.Owned {
	out := []alloc.Owned{r}
	if c.reserving == 0 {
		return out
	}
	for _, j := range c.jobs {
		v, ok := j.(*reservation)
		if !ok || v.owner != r.Owner || v.d != nil && v.d.cold {
			continue
		}
		for _, x := range v.ranges {
			out = without(out, x)
		}
	}
	return out
}

// without takes a range out of others.
func without(rs []alloc.Owned, x alloc.Range) (out []alloc.Owned) {
	for _, r := range rs {
		if x.End() <= r.Off || r.End() <= x.Off {
			out = append(out, r)
			continue
		}
		if r.Off < x.Off {
			out = append(out, alloc.Owned{Owner: r.Owner, Range: alloc.Range{Off: r.Off, Size: x.Off - r.Off}})
		}
		if x.End() < r.End() {
			out = append(out, alloc.Owned{Owner: r.Owner, Range: alloc.Range{Off: x.End(), Size: r.End() - x.End()}})
		}
	}
	return out
}

// dropFiles lets the files of jobs go that are over, once nothing lies in them and no process can use them any more, nor what an earlier core
// began.
func (c *Core) dropFiles() {
	if c.recovering {
		return
	}
	for _, job := range sortedKeys(c.over) {
		if c.alloc.UsedBy(alloc.Owner(job)) > 0 || c.reserving > 0 || c.clientsOf(job) > 0 {
			continue
		}
		c.emit(Forget{c.over[job]})
		delete(c.over, job)
		if c.warmFor == alloc.Owner(job) {
			c.warmAny = false
		}
		c.alloc.Forget(alloc.Owner(job))
		c.emit(DropSegment{job})
	}
}

func (c *Core) clientsOf(job ids.JobID) (n int) {
	for id := range c.clients {
		if c.jobOf[id] == job {
			n++
		}
	}
	return n
}
