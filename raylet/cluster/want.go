package cluster

import (
	"slices"

	"mobula/internal/ids"
	"mobula/raylet/sched"
)

// onWant notes what an owner wants of a class. Alone, a node's scheduler hears it in the owner's words.
func (c *Core) onWant(j *job, ev sched.Want) {
	n := max(ev.Backlog, 0)
	cl := j.classes[ev.Key.Class]
	if cl == nil {
		if n == 0 && !j.resyncing {
			if c.alone() {
				c.send(j, c.cfg.Self, ev)
			}
			return
		}
		cl = c.newClass(j, ev.Key, ev.Opts, ev.Kind)
	}
	c.wants(cl, n)
	s := cl.at(c.cfg.Self)
	if cl.crossed {
		cl.crossed = false
		c.stand(cl, s, true)
	}
	if n > 0 && c.staysHome(cl) {
		s.refused, cl.answers = nil, cl.refused // it is asked again, and answers
	}
	if c.alone() && !j.resyncing {
		s.asked, s.stands = n, n > 0
		c.send(j, c.cfg.Self, ev)
	}
	if n == 0 && cl.refused && cl.answers && c.alone() { // a scheduler that can run it now never says so; one that cannot is yet to refuse
		cl.refused, cl.answers = false, false
		c.tell(j, sched.Feasible{Key: cl.key})
	}
	c.settle(cl)
	if n > 0 && !c.staysHome(cl) {
		if nodes := c.unable(cl); len(nodes) > 0 { // its tasks would wait for leases there
			c.tell(j, sched.Unable{Key: cl.key, Nodes: nodes})
		}
	}
}

// unable gives those of the nodes that have many bytes of what waits of a class which cannot run it.
func (ns *nodes) unable(cl *class) (nodes []ids.Home) {
	for _, h := range cl.job.args[cl.key.Class] {
		if i, known := ns.view.find(h.Node); known && h.Bytes >= ns.cfg.HeavyArgs && !ns.able(cl, &ns.view.Nodes[i]) {
			nodes = append(nodes, h.Node)
		}
	}
	return nodes
}

// wants takes what an owner said. Leases that it had not heard of then are for what it wants: were they granted twice, tasks that are to be spread would find
// those of some nodes too many and run there.
func (c *Core) wants(cl *class, n int) {
	cl.told, cl.left = n, n
	if !c.staysHome(cl) {
		cl.left = max(n-cl.unheard, 0)
	}
}

// maxHeld bounds the nodes that are remembered to have arguments of a class.
const maxHeld = 64

// onLocality notes where the arguments of a class are, for what is placed from now on.
func (c *Core) onLocality(ev Locality) {
	args := slices.Clone(ev.Args)
	c.view.byBytes(args)
	c.job(ev.Key.Job).args[ev.Key.Class] = args[:min(len(args), maxHeld)]
}

// settle decides anew which nodes are asked for a class, and tells them.
func (c *Core) settle(cl *class) {
	if cl.job.resyncing {
		return
	}
	c.fit(cl)
	if cl.left == 0 {
		cl.giveUp = 0
	}
	if cl.rest() > 0 && !c.place(cl) {
		c.noneAble(cl)
		return
	}
	if cl.refused && cl.told > 0 && !c.alone() { // it crossed with that; alone, the scheduler answers it
		cl.refused = false
		c.tell(cl.job, sched.Feasible{Key: cl.key})
	}
	c.askAll(cl)
	c.forget(cl)
}

// fit takes leases back that were placed on nodes which cannot run them any more, and those that are too many, the own node's last. Those that are to be spread
// are placed anew.
func (c *Core) fit(cl *class) {
	for i := range cl.shares {
		if s := &cl.shares[i]; s.placed > 0 && !c.staysHome(cl) && !c.ableAt(cl, s.node) {
			c.unplace(cl, s, s.placed)
		}
	}
	if cl.shape.Strategy.Kind == Spread && cl.placed > cl.left && !c.staysHome(cl) {
		c.unplaceAll(cl)
	}
	for _, home := range []bool{false, true} {
		for i := len(cl.shares) - 1; i >= 0 && cl.placed > cl.left; i-- {
			if s := &cl.shares[i]; (s.node == c.cfg.Self) == home {
				c.unplace(cl, s, min(s.placed, cl.placed-cl.left))
			}
		}
	}
}

// place places as much of what waits as there are nodes free for. It is false where no node is able. This node is, before it has reported.
func (ns *nodes) place(cl *class) bool {
	i, asked := cl.find(ns.cfg.Self)
	refused := asked && cl.shares[i].refused != nil
	if ns.staysHome(cl) && refused {
		return false
	}
	if cl.invalid {
		return true
	}
	free, able := ns.scratch[:0], ns.staysHome(cl) || !refused && !ns.selfKnown()
	for i := range ns.view.Nodes {
		n := &ns.view.Nodes[i]
		if !ns.able(cl, n) {
			continue
		}
		able = true
		if ns.free(cl, n) {
			free = append(free, int32(i))
		}
	}
	ns.scratch = free
	if !able {
		return false
	}
	cl.giveUp = 0
	ns.placeOn(cl, free, cl.rest())
	return true
}

// placeOn places up to so many leases on free nodes.
func (ns *nodes) placeOn(cl *class, free set, n int) {
	d := Demand{Shape: cl.shape, Args: cl.job.args[cl.key.Class]}
	left := place(&ns.view, &d, n, free, ns.cfg.Config, ns.cfg.Random, func(at int32) { ns.taking = append(ns.taking, at) })
	slices.Sort(ns.taking)
	for _, at := range ns.taking {
		id := ns.view.Nodes[at].ID
		cl.at(id).placed++
		ns.peers[id].promise(cl.shape.Need, 1)
	}
	ns.taking = ns.taking[:0]
	cl.placed += n - left
}

// selfKnown tells whether this node has reported.
func (ns *nodes) selfKnown() bool {
	_, known := ns.view.find(ns.cfg.Self)
	return known
}

// unplace takes leases back that were placed on a node.
func (ns *nodes) unplace(cl *class, s *share, n int) {
	s.placed -= n
	cl.placed -= n
	if p := ns.peers[s.node]; p != nil {
		p.promise(cl.shape.Need, -int64(n))
		ns.taken(s.node, cl.shape.Need, -int64(n))
	}
}

func (ns *nodes) unplaceAll(cl *class) {
	for i := range cl.shares {
		ns.unplace(cl, &cl.shares[i], cl.shares[i].placed)
	}
}

// roomAt places leases on a node that may have become free. No other is for a class that waits; each takes one in its turn.
func (c *Core) roomAt(id ids.Home) {
	i, known := c.view.find(id)
	if !known {
		return
	}
	var touched []*class
	n := &c.view.Nodes[i]
	for at := 0; at < len(c.waiting); {
		cl := c.waiting[at]
		before := cl.placed
		if cl.rest() > 0 && c.able(cl, n) && c.free(cl, n) {
			c.scratch = append(c.scratch[:0], int32(i))
			c.placeOn(cl, c.scratch, 1)
		}
		if cl.placed == before {
			at++
			continue
		}
		c.waiting = append(slices.Delete(c.waiting, at, at+1), cl)
		if !slices.Contains(touched, cl) {
			touched = append(touched, cl)
		}
	}
	for _, cl := range touched {
		c.askAll(cl)
	}
}
