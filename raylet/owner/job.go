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
func (jb *job) endJob(err *errs.Error) {
	if jb.ended {
		return
	}
	jb.orphan = true
	why := errs.New(errs.CodeActorDied, "the driver of job %v is gone", jb.cfg.Job)
	if err != nil {
		why.Cause = wrappedCause(err)
	}
	jb.ended = jb.actors.detachedActors() == 0
	jb.endActors(why)
	if jb.ended {
		jb.leases.returnIdleLeases() // their workers have the time to end by themselves
	}
	jb.cancelPushed()
	jb.startSweep(nil)
}

// endActors ends the job's actors; while it has a detached one, not those that outlive the drivers.
func (jb *job) endActors(why *errs.Error) {
	for _, id := range jb.actors.actorIDs() {
		if a := jb.actors.byID[id]; a != nil && a.rec != nil && (jb.ended || !a.outlives()) {
			jb.actors.endActor(a, why)
		}
	}
}

// endDetachedWork ends what the last detached actor of a job without drivers leaves behind.
func (jb *job) endDetachedWork() {
	jb.actors.lastDetachedDied = false
	if jb.actors.detachedActors() == 0 {
		jb.ended = true
		jb.endActors(errs.New(errs.CodeActorDied, "the last detached actor of job %v has ended", jb.cfg.Job))
	}
}

// cancelPushed ends what workers have, so that they are free at once; what waits is swept.
func (jb *job) cancelPushed() {
	var pushed []*taskRec
	for _, id := range slices.Sorted(maps.Keys(jb.leases.byID)) {
		pushed = append(append(pushed, jb.leases.byID[id].lane.All()...), jb.leases.byID[id].fetching...)
	}
	for _, t := range pushed {
		if !t.state.Terminal() && (jb.ended || !t.outlives()) {
			jb.life.cancelTask(t, true)
		}
	}
}

// outlives tells whether a task goes on without the job's drivers: it creates a detached actor, or was submitted
// by what a detached actor runs, or by such a task.
func (t *taskRec) outlives() bool { return t.detachedDescendant || t.isCreation() && t.ofDetached() }

// ofDetached tells whether a task creates an actor that outlives the drivers, or is a call of one.
func (t *taskRec) ofDetached() bool { return t.actor != nil && t.actor.outlives() }

// outlives tells whether an actor goes on without the job's drivers: it is detached, or was created by what a detached actor runs.
func (a *actorRec) outlives() bool {
	return a.opts != nil && a.opts.Detached || a.rec != nil && a.rec.detachedDescendant
}

// markDetached notes, while the record of who submitted a task is there, whether it belongs to a detached actor. The log has it too.
func (t *taskRec) markDetached(parent *taskRec) {
	t.detachedDescendant = t.detachedDescendant || parent != nil && (parent.detachedDescendant || parent.ofDetached())
}

// hostsDetached tells whether a client runs an actor that outlives the drivers. Who has submitted a task is not known here where that is a call
// from another job.
func (cl *clientRec) hostsDetached() bool {
	return slices.ContainsFunc(cl.leases, func(l *leaseRec) bool { return l.actor != nil && l.actor.rec != nil && l.actor.outlives() })
}

func (as *actors) detachedActors() int {
	n := 0
	for _, a := range as.byID {
		if a.rec != nil && a.opts.Detached && !a.ended() {
			n++
		}
	}
	return n
}

// maybeEnded tells that the job is over once no lease is left to give back.
func (jb *job) maybeEnded() {
	if jb.told || jb.recovering || jb.actors.detachedActors() > 0 {
		return
	}
	jb.ended = true
	jb.sweeps.DeleteFunc(func(s *sweep) bool { return s.client != nil }) // what they hold goes with the job
	if jb.sweeps.Len() > 0 {
		return
	}
	for _, l := range jb.leases.byID {
		if l.state != lease.Ended && (l.load() > 0 || l.actor != nil && l.actor.rec != nil) { // an actor is being closed
			return
		}
	}
	if jb.peers.leaves() {
		return
	}
	jb.told = true
	jb.toStore(objectstore.DropJob{Job: jb.cfg.Job})
	jb.toSched(sched.DropJob{Job: jb.cfg.Job})
	jb.effects = append(jb.effects, Effect{Kind: JobEnded})
}
