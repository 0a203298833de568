package jobs

import (
	"cmp"
	"maps"
	"slices"

	"mobula/gcs/directory"
	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/objectstore"
	"mobula/raylet/owner"
	"mobula/raylet/pool"
	"mobula/wire"
)

// job is one that has an owner.
type job struct {
	waits   bool // it was restored, and its owner waits for the driver
	alone   bool // the driver is gone, or has not come in time
	orphan  bool // it went on without its driver, which may not come back
	left    bool // nor may the driver whose session has ended: the job ended with it, but for detached actors
	here    bool // its driver is in this process
	away    bool // its owner is on another node
	started bool // the raylet was told of it

	back   []Return // wait for their turn, and for the end of their client's session before
	coming int      // the number of the return that was allowed and has yet to join; 0: none has
}

// owned makes a job known that has an owner now. The store was there before the owners of restored jobs, and nobody else would ever free what it has
// found of one.
func (c *Core) owned(a Ask, id ids.JobID, j job) {
	if c.jobs[id] == nil {
		c.jobs[id] = &j
	}
	c.emit(ToDirectory{directory.JobBegan{Job: id}})
	own := Own{Job: id}
	if found, ok := c.found[id]; ok {
		delete(c.found, id)
		own.First = owner.FromStore{Node: id.Home(), Msg: found}
	}
	c.emit(own)
	c.answer(a, nil)
}

// inventory takes what the store has found.
func (c *Core) inventory(f Found) {
	switch {
	case c.jobs[f.Job] != nil: // it has come meanwhile
		c.emit(ToOwner{f.Job, owner.FromStore{Node: f.Job.Home(), Msg: f.Inventory}})
	case !c.settled:
		c.found[f.Job] = f.Inventory
	case len(f.Left) > 0 || len(f.Objects) > 0: // it is over. A client of it began to write after that, or the store was lost before it had dropped all
		c.emit(ToStore{objectstore.DropJob{Job: f.Job}})
	}
}

// allRestored has the names looked at that are left, and drops what belongs to nobody.
func (c *Core) allRestored(ev AllRestored) {
	c.settled = true
	if ev.Names {
		c.emit(ToDirectory{directory.Reconcile{}})
	}
	for _, id := range slices.Sorted(maps.Keys(c.found)) {
		c.emit(ToStore{objectstore.DropJob{Job: id}})
	}
	c.emit(Settled{}) // last: a core that follows this one before is told of all that was found
	clear(c.found)
	c.answer(ev.Ask, nil)
}

func (c *Core) alone(id ids.JobID) {
	if j := c.jobs[id]; j != nil {
		j.alone = true
		c.goOn(id, j)
	}
}

// goOn lets a restored job go on without its driver, unless that is on its way.
func (c *Core) goOn(id ids.JobID, j *job) {
	if j.waits && j.alone && j.coming == 0 && len(j.back) == 0 {
		j.waits, j.orphan = false, true
		c.emit(Resume{Job: id, Orphan: true})
	}
}

// start tells the raylet once: a job that was restored is known to it when its driver is back.
func (c *Core) start(ev Start) {
	switch j := c.jobs[ev.Job]; {
	case j == nil:
		c.answer(ev.Ask, c.errOver(ev.Job))
	case j.started:
		c.answer(ev.Ask, nil)
	default:
		j.started = true
		c.emit(StartJob(ev))
	}
}

// hosted makes a job known whose owner is on another node. The store may have had its end before.
func (c *Core) hosted(ev Hosted) {
	c.emit(ToStore{objectstore.JobOpened{Job: ev.Job}})
	if c.jobs[ev.Job] == nil {
		c.jobs[ev.Job] = &job{away: true}
	}
	c.start(Start(ev))
}

// over clears up after a job. Its drivers are told: one that came back too late would wait for answers. A job that is not known a core before this one
// had removed, and it was lost before it had cleared up; whether its driver was in this process nobody knows any more.
func (c *Core) over(ev Over) {
	id, j := ev.Job, c.jobs[ev.Job]
	if j == nil {
		j = &job{away: ev.Away, here: !ev.Away}
	}
	delete(c.jobs, id)
	c.emit(Remove{id})
	for _, cid := range slices.Sorted(maps.Keys(c.clients)) {
		cl := c.clients[cid]
		cl.Knows = slices.DeleteFunc(cl.Knows, func(of ids.JobID) bool { return of == id })
		if cl.Role == wire.RoleDriver && cl.Job == id {
			c.emit(TellOver{cid, c.errOver(id)})
		}
	}
	c.emit(ToRaylet{pool.JobEnded{Job: id, Opening: ev.Opening, Away: ev.Away}})
	c.emit(EndProcesses{id})
	c.emit(ToStore{objectstore.DropJob{Job: id}})
	if !j.away {
		c.toldOver(id)
	}
	for _, m := range j.back {
		c.answer(m.Ask, c.errOver(id))
	}
	c.emit(CleanUp{Job: id, Unmap: !j.here})
}

// toldOver tells the other jobs' owners, and the directory, that a job is over.
func (c *Core) toldOver(id ids.JobID) {
	c.emit(ToDirectory{directory.JobEnded{Job: id}})
	for _, other := range slices.Sorted(maps.Keys(c.jobs)) {
		if !c.jobs[other].away {
			c.emit(ToOwner{other, owner.FromOwner{Job: id, Msg: owner.JobGone{}}})
		}
	}
}

// missed tells a driver that nobody takes what it sends.
func (c *Core) missed(m Missed) {
	if c.jobs[m.Job] == nil {
		c.emit(TellOver{m.Client, c.errOver(m.Job)})
	}
}

// returns lets a driver come back.
func (c *Core) returns(m Return) {
	j := c.jobs[m.Job]
	switch {
	case j == nil:
		c.answer(m.Ask, errs.New(errs.CodeOwnerDied, "job %v is not known to node %s any more%s", m.Job, c.node, cmp.Or(c.whyCut(m.Job), m.Lost)))
	case j.orphan:
		c.answer(m.Ask, c.errOrphan(m.Job))
	case j.left:
		c.answer(m.Ask, c.errOver(m.Job))
	case !m.Proved:
		c.answer(m.Ask, errs.New(errs.CodePermission, "client %v does not own job %v", m.Client, m.Job))
	case j.coming != m.Nth && !slices.ContainsFunc(j.back, func(b Return) bool { return b.Nth == m.Nth }): // else the core was rebuilt with it
		j.back = append(j.back, m)
		c.nextReturn(j)
	}
}

// nextReturn lets the first in the line back if no session of its client is there. One that is there is dismissed, since the client has left it, and its end
// ends the job for the driver.
func (c *Core) nextReturn(j *job) {
	if len(j.back) == 0 || j.coming != 0 {
		return
	}
	m := j.back[0]
	if c.clients[m.Client] != nil {
		c.emit(Dismiss{m.Client, errAgain()})
		return
	}
	j.back, j.coming = j.back[1:], m.Nth
	c.answer(m.Ask, nil)
}

func (c *Core) withdrawn(m Withdrawn) {
	if j := c.jobs[m.Job]; j != nil && j.coming == m.Nth {
		j.coming = 0
		c.nextReturn(j)
		c.goOn(m.Job, j)
	}
}
