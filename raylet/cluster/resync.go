package cluster

import (
	"maps"
	"slices"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/raylet/sched"
)

// onRestored asks the owners of the jobs what they hold.
func (c *Core) onRestored(ev Restored) {
	c.epoch = ev.Epoch
	for _, n := range ev.Nodes {
		c.peers[n] = &peer{}
	}
	for _, id := range ev.Jobs {
		j := c.job(id)
		j.resyncing, j.repeated = true, true
		c.tell(j, sched.Resync{Epoch: ev.Epoch})
	}
}

// onOwnerRestarted asks every scheduler that knows the job to repeat its leases. Their wants are forgotten with it. So are leases that were repeated to the owner
// before this one: it ignores that, and those that live come once more.
func (c *Core) onOwnerRestarted(j *job, ev sched.OwnerRestarted) {
	c.openAll(j)
	c.dropLeases(j, func(l *lease) bool { return l.epoch != 0 })
	for _, l := range c.leases {
		if l.job == j {
			c.hear(l)
			l.asked = false
		}
	}
	for _, cl := range j.sortedClasses() {
		c.unplaceAll(cl)
		cl.told, cl.left, cl.giveUp, cl.crossed, cl.awaited = 0, 0, 0, false, nil
		for i := range cl.shares {
			s := &cl.shares[i]
			s.asked, s.rest = 0, 0
			c.stand(cl, s, false)
		}
		c.queue(cl)
		c.forget(cl)
	}
	j.repeated, j.epoch = true, ev.Epoch
	c.everywhere(j, ev)
}

// onHoldings passes an owner's answer on to the scheduler that asked, with what concerns that one.
func (c *Core) onHoldings(j *job, h sched.Holdings) {
	if j.resyncing && h.Epoch == c.epoch {
		c.adopt(j, h)
		return
	}
	i := slices.IndexFunc(j.asking, func(q question) bool { return q.epoch == h.Epoch })
	if i < 0 && c.alone() {
		c.send(j, c.cfg.Self, heldAt(h, c.cfg.Self))
		if c.epoch != 0 { // a core before this one knew who asked
			c.repeatWants(j, h)
		}
		return
	}
	if i < 0 { // a core before this one knew who asked, or the owner before has answered: all others ignore the epoch
		c.openAll(j)
		if !j.resyncing { // the owner repeats no want that it has named here
			c.noteWants(j, h)
			for _, cl := range j.sortedClasses() {
				c.settle(cl)
			}
		}
		c.answer(j, c.cfg.Self, h)
		for _, p := range j.places {
			c.answer(j, p.node, h)
		}
		return
	}
	q := j.asking[i]
	j.asking = slices.Delete(j.asking, i, i+1)
	if !q.gone {
		c.keepLeases(j, q.node, h)
	}
	c.noteWants(j, h)
	if c.alone() {
		c.noteAsked(j)
		c.send(j, c.cfg.Self, heldAt(h, c.cfg.Self))
		if q.node != c.cfg.Self {
			c.repeatWants(j, h)
		}
		return
	}
	for _, cl := range j.sortedClasses() {
		c.settle(cl)
	}
	if !q.gone {
		c.answer(j, q.node, h)
	}
}

// repeatWants tells this node's scheduler what the owner wants. The owner has named it in its answer to another scheduler, which is gone, and does not repeat it;
// a scheduler that has not asked ignores the answer.
func (c *Core) repeatWants(j *job, h sched.Holdings) {
	for _, w := range h.Wants {
		if w.Backlog > 0 {
			c.onWant(j, w)
		}
	}
}

// keepLeases forgets leases of a scheduler that was rebuilt which the owner does not name: both were lost at once, and nobody has them.
func (c *Core) keepLeases(j *job, n ids.Home, h sched.Holdings) {
	held := make(map[ids.LeaseID]bool, len(h.Held))
	for _, l := range h.Held {
		held[l.Lease] = true
	}
	for id, l := range c.leases {
		if l.job == j && id.Home() == n && !held[id] {
			c.endLease(id, l)
		}
	}
}

// noteWants takes the wants of an owner's answer, which are all that it has.
func (c *Core) noteWants(j *job, h sched.Holdings) {
	for _, cl := range j.classes {
		c.wants(cl, 0)
	}
	for _, w := range h.Wants {
		cl := j.classes[w.Key.Class]
		if cl == nil {
			cl = c.newClass(j, w.Key, w.Opts, w.Kind)
		}
		c.wants(cl, max(w.Backlog, 0))
		if cl.told == 0 && !cl.refused { // the owner was told so, and by whom nobody knows
			cl.refused = true
			if c.alone() {
				cl.at(c.cfg.Self).refused = errs.New(errs.CodeUnschedulable, "the scheduler before has refused it")
			}
		}
	}
}

// noteAsked takes it that this node's scheduler is told of all that is wanted in the owner's words.
func (c *Core) noteAsked(j *job) {
	for _, cl := range j.sortedClasses() {
		c.fit(cl)
		s := cl.at(c.cfg.Self)
		s.asked, s.stands = cl.told, cl.told > 0
		if s.stands {
			s.refused, cl.answers = nil, cl.refused // it is asked again, and answers
		}
		c.queue(cl)
		c.forget(cl)
	}
}

// answer sends a scheduler what an owner holds there, and what is wanted there.
func (c *Core) answer(j *job, n ids.Home, h sched.Holdings) {
	of := heldAt(h, n)
	of.Wants = nil
	for _, cl := range j.sortedClasses() {
		if i, known := cl.find(n); known && (cl.shares[i].asked > 0 || cl.refused) {
			of.Wants = append(of.Wants, sched.Want{Key: cl.key, Opts: cl.opts, Kind: cl.kind, Backlog: cl.shares[i].asked})
		}
	}
	c.send(j, n, of)
}

// heldAt leaves out what an owner holds on other nodes. One of them may be gone, and the owner is yet to be told.
func heldAt(h sched.Holdings, n ids.Home) sched.Holdings {
	h.Held = slices.DeleteFunc(slices.Clone(h.Held), func(l sched.Held) bool { return l.Lease.Home() != n })
	return h
}

// adopt takes what an owner holds for a core that was rebuilt. Nobody knows what the core before it had asked of which node: where the job has a lease every
// class is told anew, and elsewhere the job is closed.
func (c *Core) adopt(j *job, h sched.Holdings) {
	j.resyncing = false
	c.noteWants(j, h)
	for _, cl := range j.sortedClasses() {
		if cl.refused { // by whom nobody knows: the owner asks again
			cl.refused, cl.at(c.cfg.Self).refused = false, nil
			c.tell(j, sched.Feasible{Key: cl.key})
		}
	}
	j.epoch = h.Restarted
	c.dropLeases(j, func(l *lease) bool { return l.epoch != 0 && l.epoch != j.epoch }) // it has ignored them: what it holds of them it names
	for _, l := range h.Held {
		n := l.Lease.Home()
		if c.leases[l.Lease] != nil || slices.Contains(j.revoked, l.Lease) {
			continue // it has come or gone since the restart
		}
		err := j.emptied[n]
		if c.peers[n] == nil && err == nil {
			err = c.nodeGone(n)
		}
		if err != nil {
			c.tell(j, sched.Revoked{Lease: l.Lease, Worker: l.Worker, Err: err})
			continue
		}
		c.open(j, n)
		cl := j.classes[l.Key.Class]
		if cl == nil {
			cl = c.newClass(j, l.Key, l.Opts, l.Kind)
		}
		c.addLease(l.Lease, &lease{job: j, class: cl, need: cl.shape.Need, worker: l.Worker, heard: true})
	}
	j.revoked = nil
	clear(j.emptied)
	for _, n := range slices.Sorted(maps.Keys(c.peers)) {
		if _, known := j.find(n); !known && n != c.cfg.Self {
			j.isAt(presence{node: n, closing: true})
			c.emit(CloseJob{Node: n, Job: j.id})
		}
	}
	for _, cl := range j.sortedClasses() {
		c.stand(cl, cl.at(c.cfg.Self), true)
		for _, p := range j.places {
			if !p.closing {
				c.stand(cl, cl.at(p.node), true)
			}
		}
		c.settle(cl)
	}
	for i := range j.places { // it may have been opened where it has nothing
		c.count(j, j.places[i].node, 0, 0)
	}
}
