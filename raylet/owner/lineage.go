package owner

import (
	"mobula/internal/errs"
	"mobula/raylet/owner/object"
	"mobula/raylet/owner/task"
	"mobula/wire"
)

// keepLineage decides, when a task has ended, whether its spec is kept to make its results
// again. Only what lies in the store can be lost: values inside messages are in the log.
// The objects the spec uses are then kept by lineage only: their values may go, what makes
// them may not. The values that nothing makes, as puts, stay where they may be needed (objects_kept.go).
func (ln *lineage) keepLineage(t *taskRec) {
	if t.isCreation() && !t.actor.ended() {
		return // it runs again when the actor restarts
	}
	if t.spec == nil || !ln.reproducible(t) {
		if t.spec != nil && t.spec.Opts.MaxRetries == 0 { // the class's options, which stay, may be another call's
			t.flags |= taskOnce
		}
		ln.dropSpec(t)
		return
	}
	t.flags |= taskLineage
	ln.objects.eachRef(t.spec, holdLineage)
	ln.objects.releaseArgs(t)
	ln.kept.pushBack(t)
	ln.bytes += t.fullCost()
	for ln.bytes > ln.cfg.MaxLineageBytes && ln.kept.head != nil {
		old := ln.kept.head
		ln.dropLineage(old)
		old.flags |= taskEvicted
		ln.objects.keptValues.losses++
		ln.stats.LineageEvicted++
	}
}

func (ln *lineage) reproducible(t *taskRec) bool {
	if t.state != task.Finished || t.isCall() || t.isCreation() || t.spec.Opts.MaxRetries == 0 || t.live == 0 {
		return false
	}
	can := false
	t.eachReturn(func(o *objRec) {
		can = can || o.state == object.Stored && o.flags&objPacked == 0 || o.state == object.Freed && o.lineage > 0 // it ran again, and by its end nobody waited any more
	})
	return can
}

// dropSpec gives up what a task would need to run again. A call keeps its spec for its name, without arguments that take much.
func (ln *lineage) dropSpec(t *taskRec) {
	ln.objects.releaseArgs(t)
	switch {
	case t.spec == nil:
	case t.class != nil:
		ln.objects.budget.dropSpec(t.spec)
		t.dropSpec()
	case inlineBytes(t.spec) >= packMin:
		own := *t.spec
		own.Args = nil
		ln.memory.replaceSpec(t, &own)
	}
}

// dropSpec forgets a spec for good, with what of it was paged out.
func (t *taskRec) dropSpec() {
	t.spec = nil
	if t.x != nil {
		t.x.trimmed = 0
	}
}

// keptLineage is the tasks whose specs are kept.
func (ln *lineage) keptLineage() *taskList { return &ln.kept }

// dropLineage gives up the means to make a task's results again.
func (ln *lineage) dropLineage(t *taskRec) {
	if t.flags&taskLineage != 0 {
		ln.leaveLineage(t)
	}
	if t.spec != nil && t.state.Terminal() {
		ln.objects.budget.dropSpec(t.spec)
		if t.class != nil {
			t.dropSpec()
		}
	}
}

func (ln *lineage) leaveLineage(t *taskRec) {
	t.flags &^= taskLineage
	t.unlist()
	ln.bytes -= t.fullCost()
	ln.objects.eachRef(t.spec, releaseLineage)
}

// remake makes an object again whose value was dropped or lost, by running its task once
// more. It is false where that cannot be; cannotRemake says why. Arguments that are gone
// too are made again in turn, when the task looks at them.
func (ln *lineage) remake(o *objRec) bool {
	t := o.rec
	if t == nil || t.isCreation() {
		return false
	}
	switch {
	case t.nret == wire.Streaming && !ln.streams.lostItem(t, o), t.state.Terminal() && !ln.rerun(t):
		return false
	}
	ev := object.Remake
	if o.state == object.Stored {
		ev = object.Lose
		ln.copies.freeNow(o) // in case there is another copy: the new one is to be made
		ln.objects.releaseContained(containedIn(o.res))
	}
	ln.objects.moveObject(o, ev)
	o.res = nil
	return true
}

// rerun starts a task again that had finished. That uses a retry, which bounds it.
func (ln *lineage) rerun(t *taskRec) bool {
	if t.flags&taskLineage == 0 || t.state != task.Finished {
		return false
	}
	charge := ln.up.charge
	if t.nret == wire.Streaming {
		charge = ln.up.chargeLoss
	}
	if !charge(t) {
		return false
	}
	ln.stats.Reconstructed++
	ln.startAgain(t)
	return true
}

// startAgain lets a task that had finished begin anew. It has its spec.
func (ln *lineage) startAgain(t *taskRec) {
	ln.objects.holdArgs(t)
	if t.flags&taskLineage != 0 {
		ln.leaveLineage(t)
	}
	ln.tasks.move(t, task.Rerun)
	t.class = ln.leases.currentClass(t.class)
	t.class.live++
	t.flags |= taskCounted
	ln.tasks.workQ = append(ln.tasks.workQ, t)
}

// cannotRemake is the error of an object that is gone and cannot be made again.
func (ln *lineage) cannotRemake(o *objRec) *errs.Error {
	t := o.rec
	if t == nil {
		if o.id.IsPut() {
			return errs.New(errs.CodeObjectLost, "object %v was put, so nothing makes it again", o.id)
		}
		return ln.objects.unknown(o.id)
	}
	why := "the results of actor calls are not made again"
	switch {
	case t.flags&taskEvicted != 0:
		why = "its lineage was given up to stay within max_lineage_bytes"
	case t.isCall() || t.isCreation():
	case t.state == task.Failed || t.state == task.Cancelled:
		why = "its task " + t.state.String()
	case t.flags&taskOnce != 0:
		why = "its task has MaxRetries 0"
	case t.flags&taskLineage == 0 && t.state.Terminal():
		return ln.objects.unknown(o.id)
	default:
		why = "of its task's " + itoa(t.options().MaxRetries) + " retries none is left"
	}
	return errs.New(errs.CodeReconstructionFailed, "object %v of %s: %s", o.id, t.name(), why)
}
