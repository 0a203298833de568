package owner

import (
	"maps"
	"slices"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/objectstore"
	"mobula/raylet/owner/lease"
	"mobula/raylet/sched"
)

// endJob ends what the last driver leaves behind: its tasks and actors, all but detached
// actors and what those have under way. When nothing is left, JobEnded says so.
func (c *Core) endJob(err *errs.Error) {
	if c.ended {
		return
	}
	c.orphan = true
	why := errs.New(errs.CodeActorDied, "the driver of job %v is gone", c.cfg.Job)
	if err != nil {
		why.Cause = []*errs.Error{err}
	}
	for _, id := range c.actorIDs() {
		if a := c.actors[id]; a != nil && a.rec != nil && !a.opts.Detached {
			c.killActorWith(a, why)
		}
	}
	c.ended = c.detachedActors() == 0
	c.cancelPushed()
	c.startSweep(nil)
}

// cancelPushed ends what workers have, so that they are free at once; what waits is swept.
func (c *Core) cancelPushed() {
	var pushed []*taskRec
	for _, id := range slices.Sorted(maps.Keys(c.leases)) {
		pushed = append(append(pushed, c.leases[id].lane.all()...), c.leases[id].fetching...)
	}
	known := make(map[ids.TaskID]bool)
	for _, t := range pushed {
		if !t.state.Terminal() && (c.ended || !c.detached(t, known)) {
			c.cancelTask(t, true)
		}
	}
}

// detached tells whether a task belongs to a detached actor: it is a call of one, creates
// one, or was submitted by such a task.
func (c *Core) detached(t *taskRec, known map[ids.TaskID]bool) bool {
	if k, ok := known[t.id()]; ok {
		return k
	}
	known[t.id()] = false // ends a cycle, which only a forged parent can make
	k := t.actor != nil && t.actor.opts != nil && t.actor.opts.Detached && t.isCreation()
	if !k && t.spec != nil {
		if p := c.tasks.task(t.spec.Parent); p != nil {
			k = p.isCall() && p.actor.opts != nil && p.actor.opts.Detached || c.detached(p, known)
		}
	}
	known[t.id()] = k
	return k
}

func (c *Core) detachedActors() int {
	n := 0
	for _, a := range c.actors {
		if a.rec != nil && a.opts.Detached && !a.over() {
			n++
		}
	}
	return n
}

// maybeEnded tells that the job is over once no lease is left to give back.
func (c *Core) maybeEnded() {
	if c.told || c.pause != nil || c.detachedActors() > 0 {
		return
	}
	c.ended = true
	c.sweeps = slices.DeleteFunc(c.sweeps, func(s *sweep) bool { return s.client != nil }) // what they hold goes with the job
	if len(c.sweeps) > 0 {
		return
	}
	for _, l := range c.leases {
		if l.state != lease.Ended && l.load() > 0 {
			return
		}
	}
	c.told = true
	c.toStore(objectstore.DropJob{Job: c.cfg.Job})
	c.toSched(sched.DropJob{Job: c.cfg.Job})
	c.effects = append(c.effects, Effect{Kind: JobEnded})
}
