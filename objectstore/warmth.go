package objectstore

import (
	"mobula/internal/ids"
	"mobula/objectstore/alloc"
)

// recentNeed is the most that was held lately: in this span of time or in the one before. Each is half of WarmIdle.
type recentNeed struct {
	now, before uint64
	until       int64 // the end of this span
}

// note takes what is held now.
func (n *recentNeed) note(now int64, held uint64, span int64) {
	if now >= n.until {
		n.before = n.now
		if now >= n.until+span {
			n.before = held // a whole span in which nothing happened
		}
		n.now, n.until = held, now+span
	}
	n.now = max(n.now, held)
}

func (n *recentNeed) bytes() uint64 { return max(n.now, n.before) }

// step is what is reserved at a time, ahead of what is needed: a part of what the store has, so that a
// small one does not hold memory that it never uses.
func (c *Core) step() uint64 {
	return max(alloc.Page, min(max(c.cfg.ReserveStep/8, c.alloc.Backed()/16), c.cfg.ReserveStep)&^(alloc.Page-1))
}

// warmth keeps some memory reserved ahead of demand while the store is used, and gives back what is more than the recent need and a
// step: used again, memory is several times faster than new, but what one piece of work has needed is not kept through all that come after it.
func (c *Core) warmth() {
	held := c.alloc.Held()
	c.need.note(c.now, held, int64(c.cfg.WarmIdle)/2)
	if c.lastNeed == 0 && c.alloc.Backed() > 0 {
		c.lastNeed = c.now // of an earlier core's
	}
	if step := c.step(); c.warmAny && c.now < c.lastNeed+int64(c.cfg.WarmIdle) && c.room == 0 && c.reserving == 0 && c.now >= c.coldAt && c.alloc.Backed() > 0 && c.alloc.Warm() < step/2 {
		if r, ok := c.alloc.Cold(step); ok {
			c.reserving++
			c.emit(Reserve{Job: c.newJob(&reservation{nil, c.warmFor, []alloc.Range{r}}), Place: ids.JobID(c.warmFor), Ranges: []alloc.Range{r}})
		}
	}
	if c.alloc.Warm() <= c.cfg.WarmBytes {
		return
	}
	// Memory is reserved in steps and used in pieces. Were no step kept beyond the need, it would be given back and reserved anew each time.
	beyond := c.cfg.WarmBytes
	if c.now < c.lastNeed+int64(c.cfg.WarmIdle) {
		beyond = max(beyond, c.step())
	}
	keep := c.need.bytes() - held + beyond
	if c.reserving == 0 && c.alloc.Warm() > keep {
		// A piece at a time: the store does it between messages.
		if rs := c.alloc.Release(keep, punchMost); len(rs) > 0 {
			c.emit(Punch{rs})
			c.wakeAt(c.now + 5e6)
		}
	}
	c.wakeAt(c.need.until)
}
