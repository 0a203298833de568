package sched

import (
	"mobula/internal/ids"
	"mobula/wire"
)

// Load is what a scheduler says of its node, for others to choose by.
type Load struct {
	Total, Free []wire.Resource // what the node has, and what of it is not taken, in the same order; each name once
	Last        ids.LeaseID     // the last lease that was made
	Paused      bool            // memory is short: one lease at a time is granted
	Waiting     []Waiting
}

// Waiting is a class for which leases wait, and how many.
type Waiting struct {
	Opts *wire.TaskOptions
	Kind wire.TaskKind
	N    int
}

// Load writes the node's load over what l has, whose room it uses again. While owners are yet to say what they hold, nothing is free.
func (c *Core) Load(l *Load) {
	l.Total, l.Free = c.amounts(l.Total[:0], l.Free[:0])
	if c.resync.waits() {
		for i := range l.Free {
			l.Free[i].Amount = 0
		}
	}
	l.Last, l.Paused = c.nextID, c.paused
	clear(l.Waiting)
	l.Waiting = l.Waiting[:0]
	for je := c.jobs.Front(); je != nil; je = je.Next() {
		for ce := je.Value.(*job).waiting.Front(); ce != nil; ce = ce.Next() {
			cl := ce.Value.(*class)
			l.Waiting = append(l.Waiting, Waiting{cl.opts, cl.kind, cl.backlog})
		}
	}
}

// amounts appends what the node has and what of it is free.
func (c *Core) amounts(total, free []wire.Resource) (has, left []wire.Resource) {
	for i, n := range c.res.names {
		if c.res.total[i] > 0 {
			total = append(total, wire.Resource{Name: n, Amount: c.res.total[i]})
			free = append(free, wire.Resource{Name: n, Amount: max(c.res.free[i], 0)})
		}
	}
	return total, free
}
