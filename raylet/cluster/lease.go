package cluster

import (
	"slices"

	"mobula/internal/ids"
	"mobula/raylet/sched"
	"mobula/wire"
)

// lease is a lease that an owner here holds.
type lease struct {
	job    *job
	class  *class // nil: it was not wanted any more when the lease came
	need   []wire.Resource
	worker ids.ClientID
	epoch  uint64 // of the owner that it was repeated to; 0: it came in answer to a want
	heard  bool   // its owner has said so, or is not asked to
	asked  bool   // its owner was asked for it because the node is hot
}

// onGranted passes a lease on to the owner. One of another node that nobody wants any more goes back; by its owner, where that was restarted: its scheduler may
// just be repeating it, which a core after this one would take for a lease that stands.
func (c *Core) onGranted(j *job, n ids.Home, m sched.Granted) {
	home := n == c.cfg.Self
	cl := j.classes[m.Key.Class]
	unwanted := m.Epoch == 0 && !j.resyncing && (cl == nil || cl.told == 0)
	if unwanted && c.epoch != 0 { // a core before this one asked for it, and died before it took that back
		c.send(j, n, sched.Want{Key: m.Key})
	}
	held := c.leases[m.Lease]
	switch {
	case m.Epoch != 0 && j.epoch != 0 && m.Epoch != j.epoch: // to an owner before this one: it ignores that
		c.tell(j, m)
		return
	case held != nil: // told again
		if held.epoch != 0 {
			held.epoch = m.Epoch
		}
		held.asked = false // an owner that was restarted does not know of that
		c.tell(j, m)
		return
	case m.Epoch != 0 && j.past[m.Lease]:
		if c.alone() {
			c.tell(j, m)
		}
		return
	case unwanted && !home && j.epoch == 0:
		c.decline(j, n, m.Lease)
		return
	case m.Epoch == 0 && j.epoch == 0 && cl != nil && c.outOfTurn(cl, n):
		c.decline(j, n, m.Lease)
		s := cl.at(n)
		s.asked = max(s.asked-1, 0)
		c.ask(cl, s, 0)
		return
	}
	c.tell(j, m)
	if cl == nil {
		c.addLease(m.Lease, &lease{job: j, worker: m.Worker, epoch: m.Epoch, heard: true})
		return
	}
	s := cl.at(n)
	if s.placed > 0 {
		s.placed--
		cl.placed--
		c.peers[n].promise(cl.shape.Need, -1)
	} else {
		c.taken(n, cl.shape.Need, 1)
	}
	s.asked, s.since = max(s.asked-1, 0), c.now
	cl.left = max(cl.left-1, 0)
	l := &lease{job: j, class: cl, need: cl.shape.Need, worker: m.Worker, epoch: m.Epoch, heard: m.Epoch != 0 || cl.shape.Strategy.Kind != Spread}
	cl.unheard += bit(!l.heard)
	c.addLease(m.Lease, l)
	cl.tellAwaited(c)
	if c.alone() || j.resyncing {
		c.queue(cl)
		return
	}
	if cl.queued && cl.rest() == 0 {
		c.askAll(cl)
	} else if s.asked == 0 && (s.placed > 0 || c.outOfTurn(cl, n)) {
		c.ask(cl, s, s.placed)
	}
}

// decline returns a lease that no owner heard of.
func (c *Core) decline(j *job, n ids.Home, id ids.LeaseID) {
	j.gaveBack(id)
	c.send(j, n, sched.Return{Lease: id})
}

// outOfTurn tells whether one more lease of a node is for nothing that was placed there, of a class whose tasks are to be spread and all placed. A node grants
// that where the number that it is told crosses with a grant, or while another node is slow: it goes on by itself.
func (c *Core) outOfTurn(cl *class, n ids.Home) bool {
	return cl.shape.Strategy.Kind == Spread && !c.alone() && !cl.job.resyncing && cl.rest() == 0 && cl.at(n).placed == 0
}

func (c *Core) addLease(id ids.LeaseID, l *lease) {
	c.leases[id] = l
	l.job.leases++
	if l.class != nil {
		l.class.leases++
	}
	c.count(l.job, id.Home(), 1, 0)
	if p := c.peers[id.Home()]; p != nil && !c.reported(id) {
		p.recent = append(p.recent, id)
	} else {
		c.taken(id.Home(), l.need, -1) // the node's last report has it
	}
}

func (c *Core) endLease(id ids.LeaseID, l *lease) {
	c.hear(l)
	delete(c.leases, id)
	l.job.leases--
	if l.class != nil {
		l.class.leases--
	}
	c.count(l.job, id.Home(), -1, 0)
	if p := c.peers[id.Home()]; p != nil {
		if i := slices.Index(p.recent, id); i >= 0 {
			p.recent = slices.Delete(p.recent, i, i+1)
		}
	}
	c.taken(id.Home(), l.need, -1)
}

// hear notes that the owner knows of a lease, or never will.
func (c *Core) hear(l *lease) {
	if l != nil && !l.heard {
		l.heard = true
		l.class.unheard--
	}
}

// dropLeases forgets those leases of a job.
func (c *Core) dropLeases(j *job, those func(*lease) bool) {
	for id, l := range c.leases {
		if l.job == j && those(l) {
			c.endLease(id, l)
		}
	}
}

// maxPast bounds the leases that are remembered to be over, while a scheduler may repeat them (package owner has the same).
const maxPast = 4096

// gaveBack notes a lease that is over after the owner has asked schedulers to repeat their leases: one may have done so just before it heard of that.
func (j *job) gaveBack(id ids.LeaseID) {
	if j.repeated && len(j.past) < maxPast {
		j.past[id] = true
	}
}

// over ends a lease, and looks for what may take its place.
func (c *Core) over(id ids.LeaseID) {
	l := c.leases[id]
	if l == nil {
		return
	}
	c.endLease(id, l)
	if l.class != nil && l.job.classes[l.class.key.Class] == l.class {
		c.forget(l.class)
	}
	c.roomAt(id.Home())
}
