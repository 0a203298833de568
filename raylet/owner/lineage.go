package owner

import (
	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/objectstore"
	"mobula/raylet/owner/object"
	"mobula/raylet/owner/task"
	"mobula/wire"
)

// keepLineage decides, when a task has ended, whether its spec is kept to make its results
// again. Only what lies in the store can be lost: values inside messages are in the log.
// The objects the spec uses are then kept by lineage only: their values may go, what makes
// them may not.
func (c *Core) keepLineage(t *taskRec) {
	if t.isCreation() && !t.actor.over() {
		return // it runs again when the actor restarts
	}
	if t.spec == nil || !c.reproducible(t) {
		if t.spec != nil && t.spec.Opts.MaxRetries == 0 { // the class's options, which stay, may be another call's
			t.flags |= taskOnce
		}
		c.dropSpec(t)
		return
	}
	t.flags |= taskLineage
	c.eachRef(t.spec, holdLineage)
	c.unholdArgs(t)
	c.lineage.pushBack(t)
	c.lineageBytes += wire.CostOfSpec(t.spec)
	for c.lineageBytes > c.cfg.MaxLineageBytes && c.lineage.head != nil {
		old := c.lineage.head
		c.dropLineage(old)
		old.flags |= taskEvicted
		c.stats.LineageEvicted++
	}
}

func (c *Core) reproducible(t *taskRec) bool {
	if t.state != task.Finished || t.isCall() || t.isCreation() || t.spec.Opts.MaxRetries == 0 || t.live == 0 {
		return false
	}
	stored := false
	t.eachReturn(func(o *objRec) { stored = stored || o.state == object.Stored && o.flags&objPacked == 0 })
	return stored
}

// dropSpec gives up what a task would need to run again. A call keeps its spec for its name.
func (c *Core) dropSpec(t *taskRec) {
	c.unholdArgs(t)
	if t.spec != nil && t.class != nil {
		c.budget.dropSpec(t.spec)
		t.spec = nil
	}
}

// dropLineage gives up the means to make a task's results again.
func (c *Core) dropLineage(t *taskRec) {
	if t.flags&taskLineage != 0 {
		c.leaveLineage(t)
	}
	if t.spec != nil && t.state.Terminal() {
		c.budget.dropSpec(t.spec)
		if t.class != nil {
			t.spec = nil
		}
	}
}

func (c *Core) leaveLineage(t *taskRec) {
	t.flags &^= taskLineage
	t.unlist()
	c.lineageBytes -= wire.CostOfSpec(t.spec)
	c.eachRef(t.spec, releaseLineage)
}

// remake makes an object again whose value was dropped or lost, by running its task once
// more. It is false where that cannot be; cannotRemake says why. Arguments that are gone
// too are made again in turn, when the task looks at them.
func (c *Core) remake(o *objRec) bool {
	t := o.rec
	if t == nil || t.isCreation() {
		return false
	}
	switch {
	case t.nret == wire.Streaming && !c.lostItem(t, o), t.state.Terminal() && !c.rerun(t):
		return false
	}
	ev := object.Remake
	if o.state == object.Stored {
		ev = object.Lose
		c.toStore(objectstore.Free{IDs: []ids.ObjectID{o.id}}) // in case it has another copy: the new one is to be made
		c.dropInner(inside(o.res))
	}
	c.moveObject(o, ev)
	o.res = nil
	return true
}

// rerun starts a task again that had finished. That uses a retry, which bounds it.
func (c *Core) rerun(t *taskRec) bool {
	if t.flags&taskLineage == 0 || t.state != task.Finished {
		return false
	}
	charge := c.charge
	if t.nret == wire.Streaming {
		charge = c.chargeLoss
	}
	if !charge(t) {
		return false
	}
	c.stats.Reconstructed++
	c.startAgain(t)
	return true
}

// startAgain lets a task that had finished begin anew. It has its spec.
func (c *Core) startAgain(t *taskRec) {
	c.holdArgs(t)
	if t.flags&taskLineage != 0 {
		c.leaveLineage(t)
	}
	c.move(t, task.Rerun)
	t.class = c.classAgain(t.class)
	t.class.live++
	t.flags |= taskCounted
	c.workQ = append(c.workQ, t)
}

// cannotRemake is the error of an object that is gone and cannot be made again.
func (c *Core) cannotRemake(o *objRec) *errs.Error {
	t := o.rec
	if t == nil {
		if o.id.IsPut() {
			return errs.New(errs.CodeObjectLost, "object %v was put, so nothing makes it again", o.id)
		}
		return c.unknown(o.id)
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
		return c.unknown(o.id)
	default:
		why = "of its task's " + itoa(t.options().MaxRetries) + " retries none is left"
	}
	return errs.New(errs.CodeReconstructionFailed, "object %v of %s: %s", o.id, t.name(), why)
}
