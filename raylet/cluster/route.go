package cluster

import (
	"maps"
	"slices"

	"mobula/raylet/sched"
)

// fromOwner passes on what an owner says: about a lease or a worker to the node that its id begins with.
func (c *Core) fromOwner(j *job, ev sched.Event) {
	switch ev := ev.(type) {
	case sched.Want:
		c.onWant(j, ev)
	case sched.Return:
		c.send(j, ev.Lease.Home(), ev)
		j.gaveBack(ev.Lease)
		c.over(ev.Lease)
	case sched.BlockCPU:
		c.send(j, ev.Lease.Home(), ev)
	case sched.UnblockCPU:
		c.send(j, ev.Lease.Home(), ev)
	case sched.ActorUp:
		c.send(j, ev.Lease.Home(), ev)
	case sched.DrainWorker:
		c.send(j, ev.Worker.Home(), ev)
	case sched.KillWorker:
		c.send(j, ev.Worker.Home(), ev)
	case sched.OwnerRestarted:
		c.onOwnerRestarted(j, ev)
	case sched.Holdings:
		c.onHoldings(j, ev)
	case sched.DropJob:
		c.openAll(j)
		c.everywhere(j, ev)
		c.forgetJob(j)
	default:
		panic(unknown(ev))
	}
	c.maybeForget(j)
}

// everywhere sends an event to all schedulers that know the job.
func (c *Core) everywhere(j *job, ev sched.Event) {
	c.send(j, c.cfg.Self, ev)
	for _, p := range j.places {
		c.send(j, p.node, ev)
	}
}

// maybeForget drops a job of which there is nothing to know. One whose owner was restarted stays until it ends: what is said again to the owner before may come late.
func (c *Core) maybeForget(j *job) {
	if len(j.classes)+len(j.past)+len(j.refused)+len(j.places)+len(j.asking)+j.leases == 0 && !j.resyncing && j.epoch == 0 {
		delete(c.jobs, j.id)
	}
}

// fromScheduler passes on what a scheduler says to an owner. Of another node's what it said before it was told to close the job is ignored.
func (c *Core) fromScheduler(ev FromScheduler) {
	j := c.jobs[ev.Job]
	if ev.Node != c.cfg.Self && !c.hears(j, ev) {
		return
	}
	if j == nil {
		j = c.job(ev.Job)
	}
	switch m := ev.Msg.(type) {
	case sched.Granted:
		c.onGranted(j, ev.Node, m)
	case sched.Revoked:
		if _, held := c.leases[m.Lease]; held || ev.Node == c.cfg.Self || j.resyncing {
			c.tell(j, m)
		}
		if j.resyncing {
			j.revoked = append(j.revoked, m.Lease)
		}
		c.over(m.Lease)
	case sched.Infeasible:
		c.onInfeasible(j, ev.Node, m)
	case sched.Feasible:
		c.onFeasible(j, ev.Node, m)
	case sched.Resync:
		j.asking = append(j.asking, question{node: ev.Node, epoch: m.Epoch})
		c.tell(j, m)
		c.askAgain(ev.Node, []*job{j})
	default:
		c.tell(j, m)
	}
	c.maybeForget(j)
}

// hears tells whether to listen to another node about a job. A core that was rebuilt does not know yet where the job is, and listens to all. A
// scheduler that asks for a job which is over is told so: it would wait.
func (c *Core) hears(j *job, ev FromScheduler) bool {
	if c.peers[ev.Node] == nil {
		return false
	}
	if j == nil {
		if _, asks := ev.Msg.(sched.Resync); asks {
			c.emit(CloseJob{Node: ev.Node, Job: ev.Job})
		}
		return false
	}
	if j.resyncing {
		c.open(j, ev.Node)
	}
	return j.at(ev.Node) != nil
}

// openAll opens a job on every node, where a core that was rebuilt does not know yet on which it is.
func (c *Core) openAll(j *job) {
	if !j.resyncing {
		return
	}
	for _, n := range slices.Sorted(maps.Keys(c.peers)) {
		c.open(j, n)
	}
}
