package cluster

// A class for which no node is free waits here. Where others hold all leases of the other nodes it would have its turn on this node alone, so the longer it
// waits the more nodes it waits on: one lease on each, on twice as many each time. A scheduler then takes one back from who holds most (package sched).

// reach has a class wait on more nodes, as many as it does already and one more, at most one for each task. It is false where there are none.
func (ns *nodes) reach(cl *class) bool {
	before := cl.reached
	more := min(cl.reached+1, cl.rest()-cl.reached)
	from := ns.cfg.Random.IntN(max(len(ns.view.Nodes), 1))
	for i := range ns.view.Nodes {
		n := &ns.view.Nodes[(from+i)%len(ns.view.Nodes)]
		if more <= 0 {
			break
		}
		if n.ID == ns.cfg.Self || !ns.able(cl, n) || cl.job.closingAt(n.ID) {
			continue
		}
		if s := cl.at(n.ID); !s.stands && !s.reached {
			s.reached = true
			cl.reached++
			more--
		}
	}
	return cl.reached > before
}

// withdrawReach forgets on which nodes a class waited so, when all that it wants is placed.
func (cl *class) withdrawReach() {
	for i := range cl.shares {
		cl.shares[i].reached = false
	}
	cl.reached = 0
}
