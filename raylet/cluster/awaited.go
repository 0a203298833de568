package cluster

import (
	"slices"

	"mobula/raylet/sched"
)

// tellAwaited tells an owner how many leases of a class are placed on each node that are yet to come, when that changes: tasks that are to be spread wait for them a
// while (package owner). Alone there are none.
func (cl *class) tellAwaited(c *Core) {
	if cl.shape.Strategy.Kind != Spread || cl.job.resyncing {
		return
	}
	now := c.awaits[:0]
	for i := range cl.shares {
		if s := &cl.shares[i]; s.placed > 0 && !c.alone() {
			now = append(now, sched.Placed{Node: s.node, N: s.placed})
		}
	}
	c.awaits = now
	if slices.Equal(now, cl.awaited) {
		return
	}
	cl.awaited = append([]sched.Placed(nil), now...) // it is told as it is
	c.tell(cl.job, sched.Awaited{Key: cl.key, Leases: cl.awaited})
}
