package owner

import "mobula/internal/ids"

// OnLanes calls f for every task that was pushed to a worker and is not done.
func (c *Core) OnLanes(f func(worker ids.ClientID, lease ids.LeaseID, t ids.TaskID, state string)) {
	for id, l := range c.leases.byID {
		for _, t := range l.lane.All() {
			f(l.worker.id, id, t.id(), t.state.String())
		}
	}
}

// Tasks is how many tasks the core knows.
func (c *Core) Tasks() int { return c.tasks.n }
