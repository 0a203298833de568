package cluster

import (
	"cmp"
	"slices"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/raylet/sched"
)

// job is a job whose owner is here.
type job struct {
	id        ids.JobID
	classes   map[sched.Class]*class
	args      map[sched.Class][]Held      // of what waits, as the owner said
	places    []presence                  // where it was opened, without this node; by node
	asking    []question                  // what schedulers have asked its owner, in order
	refused   map[sched.Class]*errs.Error // while alone, of classes that were forgotten: the owner was told that they are infeasible
	repeated  bool                        // its owner has asked schedulers to repeat their leases
	epoch     uint64                      // of the last time that it did so; 0: not since this core began
	past      map[ids.LeaseID]bool        // that are over since
	leases    int
	resyncing bool                     // a core that was rebuilt waits for what its owner holds
	revoked   []ids.LeaseID            // meanwhile
	emptied   map[ids.Home]*errs.Error // nodes that lost or dropped all that they had of the job meanwhile, and why; they may have leases of it again
	lookAgain int64                    // when a node to stand by may be looked for again
}

// presence is what a job has on another node.
type presence struct {
	node    ids.Home
	leases  int
	wants   int   // classes that are wanted there
	objects bool  // the owner has some in the store there
	idle    int64 // since when it has none of these
	spare   bool  // it stands by, as long as the job works elsewhere
	closing bool  // CloseJob is out
}

// question is a Resync that the owner has yet to answer.
type question struct {
	node  ids.Home
	epoch uint64
	gone  bool // nobody waits for the answer
}

// unask notes that the questions of a node are over with what it had of the job: an answer does not concern what it may have since.
func (j *job) unask(id ids.Home) {
	for i := range j.asking {
		j.asking[i].gone = j.asking[i].gone || j.asking[i].node == id
	}
}

func (c *Core) job(id ids.JobID) *job {
	j := c.jobs[id]
	if j == nil {
		j = &job{id: id, classes: make(map[sched.Class]*class), args: make(map[sched.Class][]Held), refused: make(map[sched.Class]*errs.Error), past: make(map[ids.LeaseID]bool),
			emptied: make(map[ids.Home]*errs.Error)}
		c.jobs[id] = j
	}
	return j
}

func (j *job) find(n ids.Home) (int, bool) {
	return slices.BinarySearchFunc(j.places, n, func(p presence, n ids.Home) int { return cmp.Compare(p.node, n) })
}

// at gives what the job has on another node; nil: it is not open there, or is being closed.
func (j *job) at(n ids.Home) *presence {
	if i, open := j.find(n); open && !j.places[i].closing {
		return &j.places[i]
	}
	return nil
}

// closingAt tells whether a node is yet to answer a CloseJob.
func (j *job) closingAt(n ids.Home) bool {
	i, open := j.find(n)
	return open && j.places[i].closing
}

// open makes a job known to a living node, where it is not.
func (ns *nodes) open(j *job, n ids.Home) bool {
	if _, known := j.find(n); !known && n != ns.cfg.Self && ns.peers[n] != nil {
		j.isAt(presence{node: n, idle: ns.now})
		ns.emit(OpenJob{Node: n, Job: j.id})
	}
	return n == ns.cfg.Self || j.at(n) != nil
}

// isAt notes that a job is on a node, unless it is known to be.
func (j *job) isAt(p presence) {
	if i, known := j.find(p.node); !known {
		j.places = slices.Insert(j.places, i, p)
	}
}

// send passes an event on to a node on which the job is. A core that was rebuilt does not know yet where that is.
func (c *Core) send(j *job, n ids.Home, ev sched.Event) {
	if j.resyncing {
		c.open(j, n)
	}
	if n == c.cfg.Self || j.at(n) != nil {
		c.emit(ToScheduler{Node: n, Job: j.id, Event: ev})
	}
}

// count counts a lease or a want more or less of a job on another node; after the last one it is closed there in a while.
func (s *step) count(j *job, n ids.Home, leases, wants int) {
	p := j.at(n)
	if p == nil {
		return
	}
	p.leases += leases
	p.wants += wants
	s.noteIdle(p)
}

// onHolds notes whether a job has objects on another node, or is to have some. Where it is being closed it is opened again.
func (c *Core) onHolds(ev Holds) {
	j := c.job(ev.Job)
	open := ev.Objects && c.open(j, ev.Node)
	if i, known := j.find(ev.Node); known {
		p := &j.places[i]
		p.objects = ev.Objects
		c.noteIdle(p)
	}
	if open {
		c.emit(Opened{Node: ev.Node, Job: ev.Job})
	}
	c.maybeForget(j)
}

// used tells whether a job has something on a node.
func (p *presence) used() bool { return p.leases+p.wants > 0 || p.objects }

// noteIdle notes that a job has nothing on a node any more, if it has not.
func (s *step) noteIdle(p *presence) {
	if !p.used() {
		p.idle = s.now
		s.wakeAt(s.now + int64(s.cfg.CloseAfter))
	}
}

// closeIdle closes the job where it has had nothing for a while. Nothing is closed before the owner has told a core that was rebuilt what it holds: a lease of
// which only the owner knows would end.
func (s *step) closeIdle(j *job) {
	if j.resyncing {
		return
	}
	for i := range j.places {
		p := &j.places[i]
		if p.closing || p.used() || p.spare && j.worksElsewhere() {
			continue
		}
		if due := p.idle + int64(s.cfg.CloseAfter); due > s.now {
			s.wakeAt(due)
			continue
		}
		p.closing = true
		s.emit(CloseJob{Node: p.node, Job: j.id})
	}
}

// onJobClosed lets a job be opened again on a node. Where it is open, a core before this one had closed it: what was granted there before is over.
func (c *Core) onJobClosed(ev JobClosed) {
	j := c.jobs[ev.Job]
	if j == nil {
		return
	}
	if j.closingAt(ev.Node) {
		i, _ := j.find(ev.Node)
		holds := j.places[i].objects
		j.places = slices.Delete(j.places, i, i+1)
		if holds {
			c.onHolds(Holds{Job: ev.Job, Node: ev.Node, Objects: true})
		}
	} else {
		c.loseAll(ev.Node, j, errs.New(errs.CodeWorkerCrashed, "node %s has ended what it had of the job", c.cfg.NameOf(ev.Node)))
	}
	j.unask(ev.Node)
	c.askAgain(ev.Node, []*job{j}) // its scheduler has forgotten what it refused
	for _, cl := range j.sortedClasses() {
		c.recheck(cl)
	}
}

// forgetJob closes a job everywhere.
func (c *Core) forgetJob(j *job) {
	for _, cl := range j.sortedClasses() {
		c.unplaceAll(cl)
		c.waiting.unlist(cl)
	}
	c.dropLeases(j, func(*lease) bool { return true })
	for _, p := range j.places {
		if !p.closing {
			c.emit(CloseJob{Node: p.node, Job: j.id})
		}
	}
	delete(c.jobs, j.id)
}
