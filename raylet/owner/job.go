package owner

import (
	"maps"
	"slices"

	"mobula/internal/errs"
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
		why.Cause = because(err)
	}
	c.ended = c.detachedActors() == 0
	c.endActors(why)
	c.cancelPushed()
	c.startSweep(nil)
}

// endActors ends the job's actors; while it has a detached one, not those that outlive the drivers.
func (c *Core) endActors(why *errs.Error) {
	for _, id := range c.actorIDs() {
		if a := c.actors[id]; a != nil && a.rec != nil && (c.ended || !a.outlives()) {
			c.endActor(a, why)
		}
	}
}

// endHeirs ends what the last detached actor of a job without drivers leaves behind.
func (c *Core) endHeirs() {
	c.bereft = false
	if c.detachedActors() == 0 {
		c.ended = true
		c.endActors(errs.New(errs.CodeActorDied, "the last detached actor of job %v has ended", c.cfg.Job))
	}
}

// cancelPushed ends what workers have, so that they are free at once; what waits is swept.
func (c *Core) cancelPushed() {
	var pushed []*taskRec
	for _, id := range slices.Sorted(maps.Keys(c.leases)) {
		pushed = append(append(pushed, c.leases[id].lane.all()...), c.leases[id].fetching...)
	}
	for _, t := range pushed {
		if !t.state.Terminal() && (c.ended || !t.outlives()) {
			c.cancelTask(t, true)
		}
	}
}

// outlives tells whether a task goes on without the job's drivers: it creates a detached actor, or was submitted
// by what a detached actor runs, or by such a task.
func (t *taskRec) outlives() bool { return t.heir || t.isCreation() && t.ofDetached() }

// ofDetached tells whether a task creates an actor that outlives the drivers, or is a call of one.
func (t *taskRec) ofDetached() bool { return t.actor != nil && t.actor.outlives() }

// outlives tells whether an actor goes on without the job's drivers: it is detached, or was created by what a detached actor runs.
func (a *actorRec) outlives() bool {
	return a.opts != nil && a.opts.Detached || a.rec != nil && a.rec.heir
}

// inherit notes, while the record of who submitted a task is there, whether it belongs to a detached actor. The log has it too.
func (t *taskRec) inherit(parent *taskRec) {
	t.heir = t.heir || parent != nil && (parent.heir || parent.ofDetached())
}

// hostsHeir tells whether a client runs an actor that outlives the drivers. Who has submitted a task is not known here where that is a call
// from another job.
func (cl *clientRec) hostsHeir() bool {
	return slices.ContainsFunc(cl.leases, func(l *leaseRec) bool { return l.actor != nil && l.actor.rec != nil && l.actor.outlives() })
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
		if l.state != lease.Ended && (l.load() > 0 || l.actor != nil && l.actor.rec != nil) { // an actor is being closed
			return
		}
	}
	c.told = true
	c.toStore(objectstore.DropJob{Job: c.cfg.Job})
	c.toSched(sched.DropJob{Job: c.cfg.Job})
	c.effects = append(c.effects, Effect{Kind: JobEnded})
}
