package run

import "mobula/graph"

// secede takes what a task that is with the owner says. Of one that this core has not come to it is kept for when it does.
func (c *Core) secede(now int64, ev Seceded) {
	e := &c.ledger.tasks[ev.Task]
	if e.state != Sent || e.away == !ev.Back {
		return
	}
	e.away = !ev.Back
	if c.g.State(ev.Task) != graph.Processing {
		return
	}
	if e.away {
		c.flying--
		c.away++
		c.step(now, graph.LongRunning{Task: ev.Task, Attempt: c.attempts[ev.Task]})
	} else {
		c.flying++
		c.away--
		c.step(now, graph.Rejoined{Task: ev.Task, Attempt: c.attempts[ev.Task]})
	}
}

// leave says once more, to a scheduler that is new, which tasks have seceded.
func (c *Core) leave(now int64) {
	for len(c.left) > 0 {
		t := c.left[0]
		c.left = c.left[1:]
		if c.g.State(t) == graph.Processing && c.ledger.tasks[t].away {
			c.step(now, graph.LongRunning{Task: t, Attempt: c.attempts[t]})
		}
	}
}
