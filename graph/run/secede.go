package run

import "mobula/graph"

// secede handles Seceded of a task that is with the owner. If this core has not let the task go yet, it keeps the news
// until then.
func (c *Core) secede(now int64, ev Seceded) {
	e := &c.ledger.tasks[ev.Task]
	if e.state != Sent || e.seceded == !ev.Back {
		return
	}
	e.seceded = !ev.Back
	if c.g.State(ev.Task) != graph.Processing {
		return
	}
	if e.seceded {
		c.inFlight--
		c.seceded++
		c.step(now, graph.LongRunning{Task: ev.Task, Attempt: c.attempts[ev.Task]})
	} else {
		c.inFlight++
		c.seceded--
		c.step(now, graph.Rejoined{Task: ev.Task, Attempt: c.attempts[ev.Task]})
	}
}

// leave tells a new scheduler once more which tasks have seceded.
func (c *Core) leave(now int64) {
	for c.earlySeceded.Len() > 0 {
		t := c.earlySeceded.Pop()
		if c.g.State(t) == graph.Processing && c.ledger.tasks[t].seceded {
			c.step(now, graph.LongRunning{Task: t, Attempt: c.attempts[t]})
		}
	}
}
