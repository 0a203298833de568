package cluster

import (
	"mobula/internal/ids"
	"mobula/raylet/sched"
	"mobula/wire"
)

// askAll tells every node what is wanted of it: what is placed there, and its part of the rest.
func (c *Core) askAll(cl *class) {
	c.queue(cl)
	c.shareRest(cl)
	for i := range cl.shares {
		s := &cl.shares[i]
		c.ask(cl, s, s.placed+s.rest)
	}
	cl.tellAwaited(c)
}

// queue keeps a class in the list of those that wait for a node to become free.
func (c *Core) queue(cl *class) {
	switch waits := cl.rest() > 0 && !cl.invalid; {
	case !waits:
		c.waiting.unlist(cl)
		cl.withdrawReach()
	case !cl.queued:
		cl.queued = true
		c.waiting = append(c.waiting, cl)
		if !c.alone() {
			c.wakeAt(c.now + int64(c.cfg.Patience))
		}
	}
}

// ask tells a node how many leases of a class are wanted of it, when that changes from or to nothing, doubles or halves. So a number that wavers is not told
// each time, and what is told in the end is never far from it.
func (c *Core) ask(cl *class, s *share, n int) {
	switch {
	case n == 0 && !s.stands:
		return
	case n == 0 && cl.told > 0 && cl.left == 0: // the owner is about to say whether there is more
		return
	case n == 0 && s.asked == 0 && cl.rest() > 0 && c.ableAt(cl, s.node): // it goes on by itself as it becomes free, while tasks wait
		return
	case n > 0 && s.asked > 0 && n < 2*s.asked && 2*n > s.asked:
		return
	case n > 0 && !c.open(cl.job, s.node):
		return
	}
	if n > s.asked && !c.alone() {
		s.since = c.now
		c.wakeAt(c.now + int64(c.cfg.Patience))
	}
	s.asked = n
	c.stand(cl, s, n > 0)
	c.send(cl.job, s.node, sched.Want{Key: cl.key, Opts: cl.opts, Kind: cl.kind, Backlog: n})
	if n > 0 {
		c.standBy(cl)
	}
}

// stand notes whether a node goes on granting leases of a class.
func (c *Core) stand(cl *class, s *share, on bool) {
	if on != s.stands {
		s.stands = on
		c.count(cl.job, s.node, 0, 2*bit(on)-1)
	}
}

// shareRest says where tasks wait for which no node is free: at the node that the strategy names, if that is able; here, if this node is; else at
// every node that is able, in proportion to how many it can run at once.
func (c *Core) shareRest(cl *class) {
	for i := range cl.shares {
		cl.shares[i].rest = 0
	}
	st, self := cl.shape.Strategy, c.cfg.Self
	switch {
	case c.staysHome(cl):
		cl.at(self).rest = cl.rest()
	case st.Kind == Affinity && c.ableAt(cl, st.Node):
		cl.at(st.Node).rest = cl.rest()
	case c.ableAt(cl, self), !c.selfKnown() && st.allows(self) && cl.at(self).refused == nil:
		c.keepRest(cl)
	case cl.rest() > 0:
		c.shareOut(cl)
	}
}

// keepRest has the rest wait here, but for one on each node that was reached for it.
func (c *Core) keepRest(cl *class) {
	here := cl.rest()
	for i := range cl.shares {
		if s := &cl.shares[i]; s.reached && here > 1 && c.ableAt(cl, s.node) {
			s.rest = 1
			here--
		}
	}
	cl.at(c.cfg.Self).rest = here
}

// shareOut shares the rest among the nodes that are able. What is over goes to those that are asked for the class already: it does not wander.
func (c *Core) shareOut(cl *class) {
	total := int64(0)
	for i := range c.view.Nodes {
		if n := &c.view.Nodes[i]; c.able(cl, n) {
			total += slots(n.Total, cl.shape.Need)
		}
	}
	if total == 0 {
		return
	}
	all := cl.rest()
	over := all
	part := func(n *Node) int { return int(int64(all) * slots(n.Total, cl.shape.Need) / total) }
	give := func(id ids.Home, n int) {
		cl.at(id).rest += n
		over -= n
	}
	for i := range c.view.Nodes {
		if n := &c.view.Nodes[i]; c.able(cl, n) && part(n) > 0 {
			give(n.ID, part(n))
		}
	}
	for i := range cl.shares {
		if s := &cl.shares[i]; over > 0 && s.stands && c.ableAt(cl, s.node) {
			give(s.node, 1)
		}
	}
	for i := range c.view.Nodes {
		if n := &c.view.Nodes[i]; over > 0 && c.able(cl, n) {
			give(n.ID, 1)
		}
	}
}

// slots is how many leases an amount of resources is enough for; of those that need nothing, one.
func slots(have, need []wire.Resource) int64 {
	least := int64(1)
	for i, x := range need {
		if n := amountOf(have, x.Name) / x.Amount; i == 0 || n < least {
			least = n
		}
	}
	return least
}
