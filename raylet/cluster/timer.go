package cluster

import (
	"slices"
	"time"
)

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

// move takes back what was placed on nodes that had room and have none any more, as far as there is room elsewhere: they have granted nothing for a while, and
// say that the shape waits there. A lease that waits for its worker's start does not wait in that sense.
func (c *Core) move(cl *class) bool {
	if cl.placed == 0 || c.alone() {
		return false
	}
	c.wakeAt(c.now + int64(c.cfg.Patience))
	room, moved := -1, false
	for i := range cl.shares {
		s := &cl.shares[i]
		n := min(s.placed, c.backlog(cl, s))
		if n == 0 {
			continue
		}
		if room < 0 {
			room = c.room(cl)
		}
		if n = min(n, room); n > 0 {
			c.unplace(cl, s, n)
			room -= n
			moved = true
		}
	}
	return moved
}

// backlog is how much of what was placed on a node waits there too long, as the node says.
func (ns *nodes) backlog(cl *class, s *share) int {
	if s.placed == 0 || ns.now < s.since+int64(ns.cfg.Patience) {
		return 0
	}
	i, known := ns.view.find(s.node)
	if !known || ns.peers[s.node].heard <= s.since {
		return 0
	}
	all := ns.view.Nodes[i].Backlog
	if at := slices.IndexFunc(all, func(b Backlog) bool { return b.Shape.Equal(cl.shape) }); at >= 0 {
		return all[at].N
	}
	return 0
}

// room is how many leases of a class the free nodes have room for.
func (ns *nodes) room(cl *class) int {
	n := 0
	for i := range ns.view.Nodes {
		if node := &ns.view.Nodes[i]; ns.able(cl, node) && ns.free(cl, node) {
			n += int(slots(node.Free, cl.shape.Need))
		}
	}
	return n
}

// starves has a class that waits for a node to become free wait on more of them.
func (c *Core) starves(cl *class) bool {
	if !cl.queued || c.alone() {
		return false
	}
	c.wakeAt(c.now + int64(c.cfg.Patience))
	return c.reach(cl)
}
