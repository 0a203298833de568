package owner

// Step takes one event and gives what is to be done, in order. The slice, and the Records,
// Cookies and Changes in it, are the core's and valid until the next Step. now is Unix ns and
// never goes back. It panics only where the core itself is at fault: it is then to be
// thrown away and rebuilt.
func (c *Core) Step(now int64, ev Event) []Effect {
	if c.stopped {
		return nil
	}
	c.begin(now)
	c.resuming = nil
	if _, ok := ev.(Stopping); ok {
		c.stop()
	} else if c.recovering {
		c.deferEvent(ev)
	} else {
		c.handle(ev)
	}
	c.finishStep()
	return c.emitted()
}

const logEffects = 2 // at the head of a step's effects, for the log

const keepLogbuf = 1 << 20 // bytes; a larger buffer is not kept for the next step

func (c *Core) begin(now int64) {
	c.now = max(now, c.now)
	clear(c.effects)
	c.effects = append(c.effects[:0], make([]Effect, logEffects)...)
	clear(c.logs)
	c.logs = c.logs[:0]
	if cap(c.logbuf) > keepLogbuf {
		c.logbuf = nil
	}
	c.logbuf = c.logbuf[:0]
	clear(c.cookies)
	c.cookies = c.cookies[:0]
	clear(c.lapsed)
	c.lapsed = c.lapsed[:0]
	clear(c.changes)
	c.changes = c.changes[:0]
	c.refillFreeList()
}
