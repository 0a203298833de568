package cluster

import "time"

// wakeAt asks for a Timer, unless one comes sooner. Times are rounded up to a multiple of Patience: what is due at thousands of times is looked at
// together.
func (s *step) wakeAt(at int64) {
	if r := at % int64(s.cfg.Patience); r > 0 {
		at += int64(s.cfg.Patience) - r
	}
	if s.wake != 0 && s.wake <= at {
		return
	}
	s.wake = at
	s.emit(After{D: time.Duration(at - s.now)})
}

// onTimer does what is due. A timer that another one has come before is for nothing.
func (c *Core) onTimer() {
	if c.now < c.wake {
		return
	}
	c.wake = 0
	for _, j := range sortedJobs(c.jobs) {
		c.closeIdle(j)
		for _, cl := range j.sortedClasses() {
			retry, moved, reached := c.retry(cl), c.move(cl), c.starves(cl)
			if retry || moved || reached || cl.giveUp != 0 {
				c.settle(cl)
			}
		}
	}
}

// retry has nodes that could start no worker for a class be asked again.
func (c *Core) retry(cl *class) bool {
	due := false
	for i := range cl.shares {
		s := &cl.shares[i]
		switch {
		case s.retry == 0:
		case c.now < s.retry:
			c.wakeAt(s.retry)
		default:
			s.refused, s.retry, due = nil, 0, true
		}
	}
	return due
}

// starves has a class that waits for a node to become free wait on more of them.
func (ns *nodes) starves(cl *class) bool {
	if !cl.queued || ns.alone() {
		return false
	}
	ns.wakeAt(ns.now + int64(ns.cfg.Patience))
	return ns.reach(cl)
}
