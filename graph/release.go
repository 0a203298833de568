package graph

// unuse tells the inputs of a task that it does not need them any more.
func (c *Core) unuse(t int32) {
	for _, d := range c.g.deps.of(t) {
		y := &c.tasks[d]
		if y.users--; y.users == 0 {
			c.drop(d)
		}
	}
}

// drop gives up what nobody needs: a result is freed; a task that is to be made is not made,
// and then neither is what only it needed.
func (c *Core) drop(t int32) {
	base := len(c.stack)
	c.stack = append(c.stack, t)
	for len(c.stack) > base {
		t := c.pop()
		x := &c.tasks[t]
		if x.users > 0 || x.flags&isWanted != 0 {
			continue
		}
		switch {
		case x.state == Memory:
			c.free(t)
			c.to(t, onDrop)
		case x.state.active():
			c.withdraw(t)
			c.to(t, onDrop)
			for _, d := range c.g.deps.of(t) {
				y := &c.tasks[d]
				if y.users--; y.users == 0 {
					c.stack = append(c.stack, d)
				}
			}
		}
	}
}

// withdraw takes an active task from wherever it is kept.
func (c *Core) withdraw(t int32) {
	switch x := &c.tasks[t]; x.state {
	case Processing:
		c.emit(Stop{Task: t, Attempt: x.attempt, Worker: c.workers[x.worker].id})
		c.leave(t)
	case NoWorker:
		c.leaveStranded(t)
	}
}

// forget ends tasks that nobody can ever need: not wanted, and everything above forgotten.
func (c *Core) forget(t int32) {
	base := len(c.stack)
	c.stack = append(c.stack, t)
	for len(c.stack) > base {
		t := c.pop()
		x := &c.tasks[t]
		if x.alive > 0 || x.flags&isWanted != 0 || table[x.state][onForget] == illegal {
			continue
		}
		c.to(t, onForget)
		delete(c.errs, t)
		for _, d := range c.g.deps.of(t) {
			y := &c.tasks[d]
			if y.alive--; y.alive == 0 {
				c.stack = append(c.stack, d)
			}
		}
	}
}

// lose handles a result that is nowhere any more: who waits for it waits again, and it is made
// again where it is needed, with what that needs.
func (c *Core) lose(t int32) {
	x := &c.tasks[t]
	c.counters.Lost++
	for _, u := range c.g.up.of(t) {
		y := &c.tasks[u]
		switch y.state {
		case Waiting:
			y.waits++
		case NoWorker, Queued, Processing:
			c.withdraw(u)
			c.to(u, onUnmeet)
			y.waits = 1
		}
	}
	c.free(t) // copies that were on their way
	c.to(t, onDrop)
	if x.flags&isWanted != 0 {
		c.left++
		c.said = false
	}
	if x.users > 0 || x.flags&isWanted != 0 {
		c.need(t)
	}
}
