package objectstore

import (
	"cmp"
	"maps"
	"slices"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/objectstore/alloc"
)

// escape decides about the head of the queue when nothing can be evicted or spilled for it. It
// waits while someone may let go; when it is plain that nobody will, or nothing has moved
// for Stall, the head is served from a file outside the segment, or ends with an error that
// names all figures. It tells whether the head is off the queue.
func (c *Core) escape(d *demand) bool {
	if p := c.potential(); p > c.stall.best && p-c.stall.best > d.need/64 {
		c.stall = stallState{best: p}
		d.since = c.now
	}
	if c.fallbacks > 0 || c.reserving > 0 || c.recovering {
		return false // their ends step the core again
	}
	if due := d.since + int64(c.cfg.Stall); c.now >= due {
		c.stall.stuck = true // those behind need not wait as long again
	} else if c.lastHope.ticket != d.ticket && !c.stall.stuck && !c.hopeless(d) {
		c.wakeAt(due)
		return false
	}
	if err := c.noEscape(d); err != nil {
		if c.patient(d) || c.hope(d, err) {
			return false
		}
		c.queues[d.lane].Pop()
		c.giveUp(d, err)
		return true
	}
	if d.pack != nil {
		c.queues[d.lane].Pop()
		c.giveUp(d, nil)
		return true
	}
	c.queues[d.lane].Pop()
	c.fallback(d)
	return true
}

// noEscape says why a file outside the segment is no way out either.
func (c *Core) noEscape(d *demand) *errs.Error {
	short := c.now < c.coldAt && d.lane == laneCreate
	switch {
	case short:
		return c.unavailable(d)
	case c.disk.err != nil && c.cold.n > 0 && !c.drains(d):
		return errs.New(errs.CodeOutOfDisk, "%v: %s: free space in the spill directories or add one", c.disk.err, c.figures(d.need))
	case c.fallbackBytes+d.need > c.cfg.FallbackBytes:
		return errs.New(errs.CodeStoreFull, "everything is pinned: %s: close views, raise the store's limit or its disk budget", c.figures(d.need))
	case c.drain.fileErr != nil && c.now < c.drain.fileAt:
		c.wakeAt(c.drain.fileAt)
		return c.noFileError(d)
	}
	return nil
}

// hopeless tells whether every byte in the store is held by a task that itself waits: to create, in
// a get, or for arguments. Views of clients may be closed at any time, so they are hope.
func (c *Core) hopeless(d *demand) bool {
	if len(c.pinned) > 0 || len(c.old) > 0 || c.restores+len(c.rereads) > 0 || len(c.draining) > 0 {
		return false
	}
	if c.cold.n > 0 && c.potential() >= alloc.Rounded(d.need) {
		return false // enough could be spilled, if the disk came back
	}
	for _, g := range c.grants {
		if g.task.IsZero() || !c.taskWaits(g.task) {
			return false
		}
	}
	for _, l := range c.sets {
		for _, s := range l {
			if s.admitted && s.missing == 0 && !c.taskWaits(s.req.Task) {
				return false
			}
		}
	}
	return true
}

func (c *Core) taskWaits(t ids.TaskID) bool { return c.idle[t] || c.creating[t] > 0 }

// reserve asks for memory behind the unbacked parts of a demand's block, in steps.
func (c *Core) reserve(d *demand, rs []alloc.Range) {
	if !d.exact && !d.cold && c.room == 0 {
		last := &rs[len(rs)-1]
		if ahead := c.alloc.Ahead(*last, c.step()); !c.pending(d.block.Owner, ahead) {
			*last = ahead
		}
	}
	c.reserving++
	if d.lane == laneCreate {
		c.reservingCreates++
	}
	c.emit(Reserve{Job: c.newJob(&reservation{d, d.block.Owner, rs}), Place: ids.JobID(d.block.Owner), Ranges: rs, Look: d.cold})
}

// reservation is memory on its way: to a demand, or ahead of any (d is nil).
type reservation struct {
	d      *demand
	owner  alloc.Owner
	ranges []alloc.Range
}

func (c *Core) reserveDone(e ReserveDone) {
	r, ok := takeJob[*reservation](c, e.Job)
	if !ok {
		return
	}
	c.reserving--
	d := r.d
	if d != nil && d.lane == laneCreate {
		c.reservingCreates--
	}
	if e.Err == nil && (d == nil || !d.cold) {
		for _, x := range r.ranges {
			c.alloc.Back(alloc.Owned{Owner: r.owner, Range: x})
		}
		c.coldAt = 0
	}
	switch {
	case d == nil:
		if e.Err != nil {
			c.coldAt, c.coldErr = c.after(c.cfg.Stall), e.Err
		}
	case d.cancelled:
		c.freeBlock(d.block)
	case e.Err == nil:
		d.stage = stageWaiting
		c.placed(d)
	case !d.exact && !d.cold:
		d.exact = true // a whole step is not there, but what is needed may be
		c.reserve(d, c.alloc.Unbacked(d.block))
	case d.short && !d.exchanging:
		c.short(d, e.Err)
	default:
		// Only memory that the segment has already is left, for a while: back to the head of the queue.
		d.short = true
		c.log("no memory can be reserved for the object store", e.Err)
		c.coldAt, c.coldErr = c.after(c.cfg.Stall), e.Err
		if d.exchanging {
			d.exchanging, d.exchangeAt = false, c.coldAt
		}
		c.freeBlock(d.block)
		d.stage = stageWaiting
		c.queues[d.lane].PushFront(d)
		c.wakeAt(c.coldAt)
	}
	c.punchLoose(r)
}

// short ends a demand for which no memory could be reserved, twice: a restore goes on in a
// file outside the segment.
func (c *Core) short(d *demand, err error) {
	c.freeBlock(d.block)
	c.coldAt, c.coldErr = c.after(c.cfg.Stall), err
	if d.o != nil && c.fallbackBytes+d.need <= c.cfg.FallbackBytes {
		c.fallback(d)
		return
	}
	d.stage = stageWaiting
	c.giveUp(d, c.unavailable(d))
}

func (c *Core) unavailable(d *demand) *errs.Error {
	return errs.New(errs.CodeSegmentUnavailable, "%v; backed so far %d: %s", c.coldErr, c.alloc.Backed(), c.figures(d.need))
}

// fallback asks for a file to serve a demand from.
func (c *Core) fallback(d *demand) {
	d.stage, d.block = stageFallback, alloc.Block{}
	c.fallbacks++
	c.fallbackBytes += d.need
	c.emit(CreateFallback{Job: c.newJob(d), Size: max(d.need, 1), Last: c.drains(d)})
}

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K {
	return slices.Sorted(maps.Keys(m))
}
