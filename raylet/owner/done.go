package owner

import (
	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/objectstore"
	"mobula/raylet/owner/lease"
	"mobula/raylet/owner/object"
	"mobula/raylet/owner/task"
	"mobula/wire"
)

// done ends an attempt.
func (c *Core) done(cl *clientRec, d *wire.Done) {
	l := c.lastLease
	if l == nil || l.id != d.Lease {
		l = c.leases[d.Lease]
		c.lastLease = l
	}
	var t *taskRec
	if l != nil && l.worker == cl {
		t = l.lane.take(d.Task)
	}
	if t == nil && c.pause != nil {
		t, l = c.doneUnplaced(d), nil
	}
	if t == nil { // stale, or abandoned and back after all
		c.dropResults(d)
		c.toStore(objectstore.UnpinArgs{Task: d.Task, Attempt: d.Attempt})
		return
	}
	if l != nil {
		c.laneMoved(l)
	}
	c.unpinArgs(t)
	ran := d.Times.Ended - d.Times.Started
	if t.class != nil && d.Times.Ended != 0 && ran >= 0 {
		t.class.measured(ran)
	}
	if t.state.Terminal() { // it was given up: its reference has an error already
		t.lease = nil
		c.dropResults(d)
		c.stopTimer(t)
		c.reap(t)
		return
	}
	if c.cfg.Transitions {
		c.ran(t, d)
	}
	t.lease = nil
	if d.Err != nil {
		c.attemptFailed(t, l, d)
		return
	}
	c.succeed(cl, t, l, d)
}

// laneMoved follows up on a task that left a lease's lane.
func (c *Core) laneMoved(l *leaseRec) {
	l.slow = false
	if l.actor != nil {
		c.touchActor(l.actor)
		return
	}
	c.startHead(l)
	if l.lane.len() == 0 {
		c.touchLease(l)
	}
	if l.state == lease.Blocked || l.state == lease.Resuming {
		c.moveLease(l, lease.Close) // its task ended without going on: the scheduler counts its CPU as given back
	}
	if l.class != nil {
		c.touch(l.class)
	}
}

// ran tells telemetry of the run that has ended.
func (c *Core) ran(t *taskRec, d *wire.Done) {
	ch := Transition{Spec: t.spec, State: task.Running, Attempt: t.start, At: c.now, Times: &d.Times}
	if d.Times.Started != 0 {
		ch.At = d.Times.Started
	}
	if l := t.lease; l != nil {
		ch.Lease, ch.Worker = l.id, l.worker.id
	}
	c.changes = append(c.changes, ch)
}

// succeed accepts an attempt's results.
func (c *Core) succeed(cl *clientRec, t *taskRec, l *leaseRec, d *wire.Done) {
	if t.x != nil && (t.x.again || t.x.anew) {
		c.dropResults(d)
		c.runAgain(t)
		return
	}
	if t.nret == wire.Streaming {
		if len(d.Results) > 0 {
			c.dropResults(d)
			c.fail(t, errs.New(errs.CodeReturnMismatch, "%s is a stream and gave %d results", t.name(), len(d.Results)))
			return
		}
		if err := c.endStream(t, d.Items); err != nil {
			c.fail(t, err)
			return
		}
		if i := t.x.stream.missing(); i >= 0 {
			c.lostResult(t, d, i)
			return
		}
		c.finish(t, d)
		return
	}
	if t.isCreation() {
		c.created(cl, t, l, d)
		return
	}
	if len(d.Results) != int(t.nret) {
		c.dropResults(d)
		c.fail(t, errs.New(errs.CodeReturnMismatch, "%s gave %d results where its options say %d", t.name(), len(d.Results), t.nret))
		return
	}
	if i := unsealed(t, d); i >= 0 {
		c.lostResult(t, d, i)
		return
	}
	c.finish(t, d)
}

// unsealed gives the first return that is said to be stored and is not: its worker died
// before the store had sealed it; -1: none.
func unsealed(t *taskRec, d *wire.Done) int {
	for i := range d.Results {
		if d.Results[i].Kind == wire.ResultStored && t.ret(uint32(i)).state == object.Pending {
			return i
		}
	}
	return -1
}

// lostResult lets a task run again that has ended and of which the store has lost a return.
func (c *Core) lostResult(t *taskRec, d *wire.Done, i int) {
	c.dropResults(d)
	c.toStore(objectstore.Free{IDs: []ids.ObjectID{d.Task.Return(i)}}) // whatever it has: the next attempt is to make it
	charge := c.charge
	if t.nret == wire.Streaming {
		charge = c.chargeLoss
	}
	if charge(t) {
		c.stats.Lost++
		c.runAgain(t)
		return
	}
	c.fail(t, errs.New(errs.CodeObjectLost, "return %d of %s was lost by the store as it was made, and no retry is left", i, t.name()))
}

// finish makes the results the task's. The log has them before anybody sees them.
func (c *Core) finish(t *taskRec, d *wire.Done) {
	c.logDone(t, d)
	c.move(t, task.Finish)
	c.stats.Finished++
	for i := range d.Results {
		c.accepted(t.ret(uint32(i)), d, i)
	}
	c.breakPromises(t, nil)
	c.over(t)
}

// accepted resolves one return, unless it was resolved before: one attempt is accepted an
// object.
func (c *Core) accepted(o *objRec, d *wire.Done, i int) {
	r := &d.Results[i]
	if o.state != object.Pending {
		if r.Kind == wire.ResultStored && (o.state != object.Stored || o.attempt != d.Attempt) {
			c.toStore(objectstore.DropAttempt{ID: o.id, Attempt: d.Attempt})
		}
		return
	}
	switch r.Kind {
	case wire.ResultInline:
		if len(d.Results) > 1 { // else the message's other values would live as long as this one
			own := *r
			r = &own
		}
		c.resolve(o, r, object.SetInline)
	case wire.ResultError:
		c.resolve(o, errorResult(r.Err), object.SetError)
	}
}

func errorResult(err *errs.Error) *wire.Result {
	if err == nil {
		err = errs.New(errs.CodeUnknown, "it failed, and no reason was given")
	}
	return &wire.Result{Kind: wire.ResultError, Err: err}
}

// dropResults frees what a stale attempt left in the store.
func (c *Core) dropResults(d *wire.Done) {
	for i := range d.Results {
		if d.Results[i].Kind != wire.ResultStored {
			continue
		}
		id := d.Task.Return(i)
		if o := c.object(id); o == nil || o.state != object.Stored || o.attempt != d.Attempt {
			c.toStore(objectstore.DropAttempt{ID: id, Attempt: d.Attempt})
		}
	}
}

// fail ends a task with an error, which then says which task it is of: every return that is not resolved has it.
func (c *Core) fail(t *taskRec, err *errs.Error) {
	if err.Task == "" {
		own := *err // it may be others' too
		own.Task, err = t.id().String(), &own
	}
	c.end(t, task.Fail, err)
}

// end ends a task without results.
func (c *Core) end(t *taskRec, ev task.Event, err *errs.Error) {
	t.unlist()
	c.logFailed(t, err)
	if c.cfg.Transitions {
		t.ext().err = err
	}
	c.move(t, ev)
	if ev == task.Cancel {
		c.stats.Cancelled++
	} else {
		c.stats.Failed++
	}
	if t.nret == wire.Streaming {
		c.failStream(t, err)
	} else if t.nret > 0 {
		res := errorResult(err)
		for i := range uint32(t.nret) {
			if o := t.ret(i); o.state == object.Pending {
				c.resolve(o, res, object.SetError)
			}
		}
	}
	if t.isCreation() {
		c.creationFailed(t.actor, err)
	}
	c.breakPromises(t, err)
	c.over(t)
}

// over is what every end of a task has in common.
func (c *Core) over(t *taskRec) {
	if t.x != nil {
		if t.lease == nil || t.state == task.Finished {
			c.stopTimer(t)
		}
		if t.x.group != nil && !t.isCreation() { // an actor stays a suspect while it lives
			t.x.group = nil
		}
	}
	if t.flags&taskParent != 0 {
		t.flags &^= taskParent
		delete(c.kids, t.id())
	}
	if t.flags&taskCounted != 0 {
		t.flags &^= taskCounted
		t.class.live--
	}
	if t.isCall() {
		c.callOver(t)
	}
	c.keepLineage(t)
	if t.live == 0 {
		c.reap(t)
	}
}

// resolve gives an object its outcome and tells everyone who waits for it.
func (c *Core) resolve(o *objRec, res *wire.Result, ev object.Event) {
	c.moveObject(o, ev)
	o.res = res
	c.holdInner(inside(res))
	if ev == object.SetInline {
		c.budget.add(o)
	}
	if fetch, ok := o.takeGet(); ok {
		c.answer(o.holder, o, fetch)
	}
	if w := o.waits; w != nil {
		o.waits = nil
		for _, g := range w.gets {
			c.answer(g.client, o, g.fetch)
		}
		c.wake(w)
		c.recycle(w)
	}
	c.loosen(o)
}

// wake makes tasks ready that waited for this only.
func (c *Core) wake(w *waits) {
	for _, tw := range w.tasks {
		if tw.t.gen == tw.gen && tw.t.state == task.PendingArgs {
			if tw.t.deps--; tw.t.deps == 0 {
				c.readyQ = append(c.readyQ, tw.t)
			}
		}
	}
}

func (c *Core) moveObject(o *objRec, ev object.Event) {
	to, ok := object.Next(o.state, ev)
	if !ok {
		panic("owner: object " + o.id.String() + " is " + o.state.String() + " and cannot " + ev.String())
	}
	o.state = to
}

// doneUnplaced finds the task of a Done that came while leases are not known yet.
func (c *Core) doneUnplaced(d *wire.Done) *taskRec {
	t := c.tasks.task(d.Task)
	if t == nil || t.state.Terminal() || t.lease != nil || t.flags&taskWaitsName != 0 || d.Err != nil && d.Err.Code == errs.CodeCancelled && t.flags&taskCancelled == 0 {
		return nil // of an attempt that was given up
	}
	t.start = max(t.start, d.Attempt)
	c.reach(t)
	return t
}
