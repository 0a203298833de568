package owner

import "time"

// finishStep follows up on what the event set in motion and emits what was collected.
func (c *Core) finishStep() {
	c.drain()
	if !c.recovering && !c.stopped {
		c.dispatchAll()
		c.collectUnreferenced()
		c.drain() // nothing of a drop makes work, but a dead actor's calls end
		c.dispatchAll()
		c.enforceBudget()
	}
	c.forgetReaped()
	c.flushClaims()
	c.flushLeases()
	c.flushNews()
	c.flushUnneeded()
	c.flushStreams()
	c.flushFreed()
	c.flushCredit()
	c.arm()
	if len(c.changes) > 0 {
		c.effects = append(c.effects, Effect{Kind: Transitions, Changes: &c.changes})
	}
	if c.orphan {
		c.maybeEnded()
	}
}

// dispatchAll pushes what can run: tasks over leases, calls to actors.
func (c *Core) dispatchAll() {
	for again := true; again; {
		c.dispatchClasses()
		c.pumpAll()
		again = len(c.readyQ)+len(c.workQ) > 0 // arguments found lost on the way: what was behind may have its turn
		c.drain()
	}
}

// drain works until no task's arguments are to be looked at, no actor's failure is another's, and who calls actors past the owner has heard of them.
func (c *Core) drain() {
	for len(c.readyQ)+len(c.workQ) > 0 || (len(c.escalated)+len(c.actors.touched) > 0 || c.lastDetachedDied) && !c.recovering {
		for i := 0; i < len(c.readyQ); i++ {
			c.argsReady(c.readyQ[i])
		}
		clear(c.readyQ)
		c.readyQ = c.readyQ[:0]
		for i := 0; i < len(c.workQ); i++ {
			c.await(c.workQ[i])
		}
		clear(c.workQ)
		c.workQ = c.workQ[:0]
		if len(c.escalated) > 0 && !c.recovering {
			c.escalate()
		}
		if c.lastDetachedDied && !c.recovering {
			c.endDetachedWork()
		}
		if len(c.actors.touched) > 0 && !c.recovering {
			c.showInstances()
		}
	}
}

// flushFreed emits what the step forgot: the log's tombstone before what it allows. Of a log that ends with the process the frees are all there is: they
// are among the first effects.
func (c *Core) flushFreed() {
	if len(c.forgot) > 0 {
		c.logForget()
		c.forgot = c.forgot[:0]
	}
	c.flushLapsed()
	if len(c.cookies) > 0 && !c.ended && !c.cfg.VolatileLog {
		c.effects = append(c.effects, Effect{Kind: LogFree, Cookies: &c.cookies})
	}
	c.flushFrees()
}

// arm asks for the earliest timer, if it is earlier than what was asked for. While a rebuilt core waits for its clients it is for
// the end of that: nothing else that is due would be run.
func (c *Core) arm() {
	if c.timers.Len() == 0 {
		return
	}
	at := c.timers.First().at
	if p := c.pause; p != nil {
		if p.timer == nil {
			return
		}
		at = p.timer.at
	}
	if c.armed != 0 && c.armed <= at {
		return
	}
	c.armed = at
	c.effects = append(c.effects, Effect{Kind: After, N: max(at-c.now, int64(time.Microsecond))})
}

// emitted gives the effects of the step, its records first.
func (c *Core) emitted() []Effect {
	first := logEffects
	if len(c.cookies) > 0 && !c.ended && c.cfg.VolatileLog {
		first--
		c.effects[first] = Effect{Kind: LogFree, Cookies: &c.cookies}
	}
	if len(c.logs) > 0 {
		first--
		c.effects[first] = Effect{Kind: Log, Records: &c.logs}
	}
	return c.effects[first:]
}
