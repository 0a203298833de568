package cluster

import (
	"mobula/internal/ids"
	"mobula/raylet/sched"
)

// standBy opens a job on a second node, where one other node alone is asked for leases and this node could not take over. The program is brought there and a
// worker starts, so that what the first node takes along when it dies runs again at once.
func (ns *nodes) standBy(cl *class) {
	j := cl.job
	if n, stands := j.standsBy(); stands {
		ns.name(cl, n)
		return
	}
	if len(j.places) != 1 || ns.alone() || j.resyncing || ns.now < j.lookAgain || ns.ableAt(cl, ns.cfg.Self) {
		return
	}
	j.lookAgain = ns.now + int64(ns.cfg.CloseAfter) // else all nodes are looked at for each want, of a job that one node alone can run
	if n, found := ns.spare(cl); found && ns.open(j, n) {
		j.at(n).spare = true
		for _, of := range j.sortedClasses() {
			if of.named = false; of.told+of.leases > 0 {
				ns.name(of, n)
			}
		}
	}
}

// standsBy is the node that stands by and has nothing of the job yet.
func (j *job) standsBy() (ids.Home, bool) {
	for i := range j.places {
		if p := &j.places[i]; p.spare && !p.closing && !p.used() {
			return p.node, true
		}
	}
	return 0, false
}

// name tells the node that stands by of a class, once: a want of zero has it bring what the class's tasks run.
func (ns *nodes) name(cl *class, n ids.Home) {
	if cl.named || !ns.ableAt(cl, n) {
		return
	}
	cl.named = true
	ns.emit(ToScheduler{Node: n, Job: cl.job.id, Event: sched.Want{Key: cl.key, Opts: cl.opts, Kind: cl.kind}})
}

// spare is a node that could run a class and does not have its job: a free one if there is any, and not the same one for each job.
func (ns *nodes) spare(cl *class) (ids.Home, bool) {
	var free, able []ids.Home
	for i := range ns.view.Nodes {
		n := &ns.view.Nodes[i]
		if _, open := cl.job.find(n.ID); open || n.ID == ns.cfg.Self || !ns.able(cl, n) {
			continue
		}
		able = append(able, n.ID)
		if ns.free(cl, n) {
			free = append(free, n.ID)
		}
	}
	if len(free) == 0 {
		free = able
	}
	if len(free) == 0 {
		return 0, false
	}
	return free[uint64(cl.job.id)%uint64(len(free))], true
}

// worksElsewhere tells whether a job has something on another node.
func (j *job) worksElsewhere() bool {
	for i := range j.places {
		if p := &j.places[i]; !p.closing && p.used() {
			return true
		}
	}
	return false
}
