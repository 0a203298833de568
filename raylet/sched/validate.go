package sched

import (
	"fmt"
	"slices"
)

// Unheard tells whether an owner that is waited for no more is yet to say what it holds: for simulations.
func (c *Core) Unheard() bool { return len(c.resync.late) > 0 }

// Validate computes every total of the core again, and gives the first that is wrong. It looks at every lease: for tests and simulations,
// between two steps.
func (c *Core) Validate() error {
	n := len(c.res.names)
	free, stuck := slices.Clone(c.res.total), make([]int64, n)
	running, leases, active := 0, 0, 0
	for _, j := range c.byJob {
		if j.place != nil != (j.waiting.Len() > 0) {
			return fmt.Errorf("job %d: has a turn: %v, waiting classes: %d", j.id, j.place != nil, j.waiting.Len())
		}
		waiting := 0
		for _, cl := range j.classes {
			if cl.spot != nil {
				waiting++
			}
			if cl.spot != nil != (cl.backlog > 0 && cl.bad == nil) {
				return fmt.Errorf("class %v: waits %v with backlog %d, bad %v", cl.key, cl.spot != nil, cl.backlog, cl.bad)
			}
			if cl.lastWant == 0 && len(cl.leases) == 0 && cl.bad == nil {
				return fmt.Errorf("class %v is kept for nothing", cl.key)
			}
			if cl.lastWant > 0 && cl.backlog == 0 && cl.refillAt == 0 {
				return fmt.Errorf("class %v wants and stands still", cl.key)
			}
			due := c.wake != 0 || cl.refillAt == whenUp && cl.starting() > 0
			if cl.refillAt != 0 && cl.lastWant > 0 && (!cl.listed || !slices.Contains(c.exhausted, cl) || !due) {
				return fmt.Errorf("class %v is never filled again", cl.key)
			}
			r := 0
			for i, l := range cl.leases {
				if l.at != i || l.class != cl || c.leases[l.id] != l {
					return fmt.Errorf("lease %d is misplaced", l.id)
				}
				leases++
				for _, x := range l.held() {
					free[x.r] -= x.n
					if l.stuck() {
						stuck[x.r] += x.n
					}
				}
				if !l.up && (l.state == Running || l.state == Starting) {
					r++
				}
				if l.reclaimable() {
					active++
				}
				if l.state == Ended || l.state == 0 {
					return fmt.Errorf("lease %d is %v and still in the table", l.id, l.state)
				}
				if (l.state == Resuming) != slices.Contains(c.resuming.All(), l) {
					return fmt.Errorf("lease %d is %v, in the line of resumes: %v", l.id, l.state, slices.Contains(c.resuming.All(), l))
				}
			}
			if r != cl.running {
				return fmt.Errorf("class %v: %d running, counted %d", cl.key, r, cl.running)
			}
			running += r
		}
		if waiting != j.waiting.Len() {
			return fmt.Errorf("job %d: %d classes wait, %d in line", j.id, waiting, j.waiting.Len())
		}
	}
	switch {
	case leases != len(c.leases):
		return fmt.Errorf("%d leases in classes, %d in the table", leases, len(c.leases))
	case running != c.running:
		return fmt.Errorf("%d leases running, counted %d", running, c.running)
	case active != c.active.n:
		return fmt.Errorf("%d leases reclaimable, listed %d", active, c.active.n)
	case !slices.Equal(free, c.res.free):
		return fmt.Errorf("free %v, counted %v", free, c.res.free)
	case !slices.Equal(stuck, c.res.stuck):
		return fmt.Errorf("stuck %v, counted %v", stuck, c.res.stuck)
	}
	for i, f := range free {
		if f < 0 && !c.resync.overdrew && (i != resCPU || -f > stuck[i]) { // a task that left a get goes on beside actors that took its CPU
			return fmt.Errorf("%s is overdrawn by %d", c.res.names[i], -f)
		}
	}
	return nil
}
