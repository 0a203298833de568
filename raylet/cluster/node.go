package cluster

import (
	"maps"
	"slices"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/raylet/sched"
	"mobula/wire"
)

// peer is a node that lives, this one among them: what of its resources is gone that its last report has as free.
type peer struct {
	promised []wire.Resource // what the leases take that were placed there and not granted
	recent   []ids.LeaseID   // granted since
	heard    int64           // when it reported last
	silent   int64           // until when its first report is waited for; 0: nobody waits
	relieved int64           // when its leases were asked back last because it is hot; 0: never
}

// promise adds what so many leases more take, or fewer.
func (p *peer) promise(need []wire.Resource, times int64) {
	for _, x := range need {
		i := slices.IndexFunc(p.promised, func(r wire.Resource) bool { return r.Name == x.Name })
		if i < 0 {
			i = len(p.promised)
			p.promised = append(p.promised, wire.Resource{Name: x.Name})
		}
		p.promised[i].Amount += times * x.Amount
	}
}

// taken takes what leases need off what a node has free, or gives it back.
func (ns *nodes) taken(id ids.Home, need []wire.Resource, times int64) {
	if i, known := ns.view.find(id); known {
		ns.view.Nodes[i].take(need, times)
	}
}

// reported tells whether a node's last report has a lease as taken.
func (ns *nodes) reported(id ids.LeaseID) bool {
	i, known := ns.view.find(id.Home())
	return known && id <= ns.view.Nodes[i].Last
}

// onReport takes a report of a node that lives.
func (c *Core) onReport(n Node) {
	p := c.peers[n.ID]
	if p == nil {
		return
	}
	var was Node
	i, known := c.view.find(n.ID)
	if known {
		was = c.view.Nodes[i]
	}
	if known && was.sameAs(&n) { // it is the sender's, who may use it again
		n.Total, n.Labels = was.Total, was.Labels
	} else {
		n.Total, n.Labels = slices.Clone(n.Total), maps.Clone(n.Labels)
	}
	n.Free, n.Backlog = slices.Clone(n.Free), slices.Clone(n.Backlog)
	if !c.view.Report(n) {
		return
	}
	p.heard = c.now
	c.taken(n.ID, p.promised, 1)
	p.recent = slices.DeleteFunc(p.recent, c.reported)
	for _, id := range p.recent {
		c.taken(n.ID, c.leases[id].need, 1)
	}
	if !known || !was.sameAs(&n) {
		c.askAgain(n.ID, sortedJobs(c.jobs))
		c.abilityChanged()
	}
	c.roomAt(n.ID)
	relieve(c, n.ID)
}

// await gives until when the first reports of nodes are waited for: one that is not known may be able to run what no other can.
func (ns *nodes) await() int64 {
	at := int64(0)
	for _, p := range ns.peers {
		if p.heard != 0 {
			continue
		}
		if p.silent == 0 {
			p.silent = ns.now + int64(firstReport)
		}
		at = max(at, p.silent)
	}
	return at
}

// sameAs tells whether two reports make a node able to run the same.
func (n *Node) sameAs(o *Node) bool {
	return n.State == o.State && slices.Equal(n.Total, o.Total) && maps.Equal(n.Labels, o.Labels)
}

// askAgain forgets what a node has refused: it has other resources, or another scheduler. Alone, that one takes it back itself.
func (c *Core) askAgain(id ids.Home, of []*job) {
	if c.alone() {
		return
	}
	for _, j := range of {
		for _, cl := range j.classes {
			if i, known := cl.find(id); known && cl.shares[i].retry == 0 {
				cl.shares[i].refused = nil
			}
		}
	}
}

// abilityChanged looks at every class again: a node can run other things than before.
func (c *Core) abilityChanged() {
	for _, j := range sortedJobs(c.jobs) {
		j.lookAgain = 0
		for _, cl := range j.sortedClasses() {
			c.recheck(cl)
			if cl.told+cl.leases > 0 {
				c.standBy(cl)
			}
		}
		if c.alone() {
			continue
		}
		for _, of := range slices.Sorted(maps.Keys(j.refused)) { // nobody knows what they ask: the owner asks again
			c.tell(j, sched.Feasible{Key: sched.ClassKey{Job: j.id, Class: of}})
		}
		clear(j.refused)
	}
}

// onNodeGone ends what was on a node, and asks others for what was wanted there.
func (c *Core) onNodeGone(id ids.Home) {
	if id == c.cfg.Self || c.peers[id] == nil {
		return
	}
	delete(c.peers, id)
	c.gone[id] = true
	c.view.Remove(id)
	for _, j := range c.jobs {
		j.unplaceAt(id)
		if i, open := j.find(id); open {
			j.places = slices.Delete(j.places, i, i+1)
		}
		j.unask(id)
	}
	c.loseAll(id, nil, c.nodeGone(id))
	c.abilityChanged()
}

// unplaceAt forgets what is wanted of a job on a node.
func (j *job) unplaceAt(id ids.Home) {
	for _, cl := range j.classes {
		if i, known := cl.find(id); known {
			cl.placed -= cl.shares[i].placed
			cl.reached -= bit(cl.shares[i].reached)
			cl.shares = slices.Delete(cl.shares, i, i+1)
		}
	}
}

// onJobAbandoned ends what a job had on a node that does not answer, and asks others for what was wanted there. The node may live: it is used for the job
// again when it has closed it. A core that was rebuilt does not know yet whether the job is there, and closes it in any case.
func (c *Core) onJobAbandoned(ev JobAbandoned) {
	j := c.jobs[ev.Job]
	if j != nil && j.resyncing {
		c.open(j, ev.Node)
	}
	if j == nil || j.at(ev.Node) == nil {
		return
	}
	c.loseAll(ev.Node, j, errs.New(errs.CodeWorkerCrashed, "node %s does not answer", c.cfg.NameOf(ev.Node)))
	for _, cl := range j.classes {
		if i, known := cl.find(ev.Node); known { // the node stays in the view
			c.unplace(cl, &cl.shares[i], cl.shares[i].placed)
		}
	}
	j.unplaceAt(ev.Node)
	*j.at(ev.Node) = presence{node: ev.Node, closing: true}
	c.emit(CloseJob{Node: ev.Node, Job: j.id})
	if i, known := c.view.find(ev.Node); known {
		c.view.Nodes[i].State = Dead // until it reports again
	}
	c.abilityChanged()
}

// empties notes that all leases which a job has on a node are over: an owner that is yet to answer a core that was rebuilt may name them.
func (j *job) empties(id ids.Home, err *errs.Error) {
	if j.resyncing {
		j.emptied[id] = err
	}
}

// loseAll tells owners that their leases of a node are over: those of one job, or of all.
func (c *Core) loseAll(id ids.Home, of *job, err *errs.Error) {
	for _, j := range c.jobs {
		if of == nil || j == of {
			j.empties(id, err)
		}
	}
	for _, l := range slices.Sorted(maps.Keys(c.leases)) {
		if held := c.leases[l]; l.Home() == id && (of == nil || held.job == of) {
			c.endLease(l, held)
			c.tell(held.job, sched.Revoked{Lease: l, Worker: held.worker, Err: err})
		}
	}
}

func (s *step) nodeGone(id ids.Home) *errs.Error {
	return errs.New(errs.CodeWorkerCrashed, "its node %s is gone", s.cfg.NameOf(id))
}
