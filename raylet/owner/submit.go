package owner

import (
	"unsafe"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/raylet/owner/object"
	"mobula/raylet/owner/task"
	"mobula/wire"
)

// maxReturns bounds the returns of one task, and the items of a stream; fewReturns may be announced whatever the budget is.
const maxReturns, fewReturns = 1 << 20, 1 << 10

// returnCost is the bytes of the record of a further return, which is there from when it is announced.
const returnCost = int64(unsafe.Sizeof(objRec{}))

// mayAnnounce is how many returns a task may have: their records, which the message that announces them does not pay for, take a quarter of the budget at most.
func (c *Core) mayAnnounce() int32 {
	return int32(min(max(c.cfg.InlineBudget/4/returnCost, fewReturns), maxReturns))
}

// submit takes a task. One that is known already, because its parent runs again, is not
// taken twice: the client only gets its handles.
func (c *Core) submit(cl *clientRec, spec *wire.TaskSpec) {
	if c.cfg.CreditWindow > 0 {
		c.spend(cl, wire.CostOfSpec(spec))
	}
	name := ids.ObjectID{Task: spec.ID}
	known, at := c.tasks.findOrPlace(&name)
	if known != nil {
		c.giveReturns(cl, known.rec)
		c.takeAgain(known.rec, spec)
		return
	}
	refused := c.refuse(spec)
	if spec.Opts.NumReturns > c.mayAnnounce() {
		spec = withOneReturn(spec)
	}
	t := c.newTask(spec, at)
	c.giveReturns(cl, t)
	by := c.tasks.task(spec.Parent)
	t.inherit(by)
	t.heir = t.heir || by == nil && cl.hostsHeir()
	var parent ids.ActorID
	if spec.Opts.Escalate && spec.Kind == wire.TaskActorCreate {
		parent = actorOf(by)
	}
	c.logSubmit(t, parent)
	if refused != nil {
		c.stats.Submitted++
		c.fail(t, refused)
		return
	}
	if parent != (ids.ActorID{}) {
		t.actor = newActor(t)
		t.actor.parent = parent
	}
	c.accept(t, by)
}

// refuse gives the reason not to take a spec at all.
func (c *Core) refuse(spec *wire.TaskSpec) *errs.Error {
	switch o := spec.Opts; {
	case c.ended:
		return errs.New(errs.CodeShutdown, "task %v: job %v has ended", spec.ID, c.cfg.Job)
	case o.NumReturns > c.mayAnnounce():
		return errs.New(errs.CodeInvalid, "%s asks for %d returns, whose records take %d bytes; at most %d are possible, a quarter of this node's budget of %d bytes for inline values and records: return a list, or a stream, or give the node a larger store",
			o.Func, o.NumReturns, int64(o.NumReturns)*returnCost, c.mayAnnounce(), c.cfg.InlineBudget)
	case spec.Deadline != 0 && spec.Deadline <= c.now:
		return errs.New(errs.CodeDeadline, "%s was submitted after its deadline", o.Func)
	}
	return nil
}

// withOneReturn is what is kept of a task that announces more than is possible: its error.
func withOneReturn(spec *wire.TaskSpec) *wire.TaskSpec {
	own, opts := *spec, *spec.Opts
	opts.NumReturns = 1
	own.Opts = &opts
	return &own
}

// newTask makes the record of a task and enters it where it belongs.
func (c *Core) newTask(spec *wire.TaskSpec, at place) *taskRec {
	t := c.taskRecord()
	c.born = max(c.born+1, c.now)
	t.spec, t.nret, t.born, t.since, t.begun = spec, spec.Opts.NumReturns, c.born, c.now, ticks(c.now)
	t.ret0.id.Task = spec.ID
	t.ret0.rec = t
	if spec.Kind == wire.TaskActorCreate {
		t.nret = 1
	}
	switch {
	case t.nret == wire.Streaming:
		t.ext().stream = newStream()
		c.streams++
		t.live = 1
	case t.nret < 0:
		t.nret = 0
	default:
		t.live = uint32(t.nret)
		if t.nret > 1 {
			more := make([]objRec, t.nret-1)
			for i := range more {
				more[i].id = spec.ID.Return(i + 1)
				more[i].rec = t
			}
			t.ext().more = more
			c.budget.returns += int64(len(more)) * returnCost
		}
	}
	c.tasks.enter(&t.ret0, at)
	c.budget.addSpec(spec)
	if len(c.strays) > 0 {
		c.adoptStrays(t)
	}
	c.promise(t)
	t.state = task.PendingArgs
	c.byState[t.state]++
	if c.cfg.Transitions {
		c.changed(t, c.now)
	}
	return t
}

// accept starts the life of a task whose record is new, at its submission or when the log
// is read: it takes its references and looks at its arguments. parent has submitted it; nil: it is not known any more.
func (c *Core) accept(t, parent *taskRec) {
	c.stats.Submitted++
	spec := t.spec
	if parent != nil && !parent.state.Terminal() {
		parent.flags |= taskParent
		c.addKid(spec.Parent, spec.ID)
	}
	if spec.Kind != wire.TaskNormal {
		if !c.acceptActorTask(t) {
			return
		}
	} else {
		c.holdArgs(t)
		t.class = c.classOf(wire.TaskNormal, spec.Opts)
	}
	if t.class != nil {
		t.class.live++
		t.flags |= taskCounted
	}
	if spec.Deadline != 0 {
		c.setTimer(t, spec.Deadline, timerDeadline)
	}
	if t.flags&taskWaitsName == 0 {
		c.await(t)
	}
}

// giveReturns gives the client its handles on the returns.
func (c *Core) giveReturns(cl *clientRec, t *taskRec) {
	c.givePromises(cl, t)
	if t.nret == wire.Streaming {
		t.x.stream.join(cl)
		return
	}
	for i := range uint32(max(t.nret, 0)) {
		o := t.ret(i)
		c.giveHandle(cl, o)
		if o.state == object.Freed {
			c.remake(o) // its value was dropped; the parent runs again and wants it
		}
	}
}

// takeAgain runs a task once more of which a return was dropped while others were kept, where lineage does not make it: the one
// who submits it anew, and whoever that one calls with it, wants them all. The error of a task that has failed stays what it was.
func (c *Core) takeAgain(t *taskRec, spec *wire.TaskSpec) {
	if !t.state.Terminal() || t.isCall() || t.isCreation() || t.nret < 2 {
		return
	}
	var dropped []*objRec
	var failed *wire.Result
	t.eachReturn(func(o *objRec) {
		switch o.state {
		case object.Freed:
			dropped = append(dropped, o)
		case object.Failed:
			failed = o.res
		}
	})
	if len(dropped) == 0 || t.state != task.Finished && failed == nil {
		return
	}
	for _, o := range dropped {
		c.moveObject(o, object.Remake)
	}
	if t.state != task.Finished {
		for _, o := range dropped {
			c.resolve(o, failed, object.SetError)
		}
		return
	}
	if t.spec == nil {
		t.spec = spec
		c.budget.addSpec(spec)
	}
	c.logRetry(t)
	c.startAgain(t)
}

// adoptStrays lets the returns of a task that comes anew take over what was counted for
// their names while they were unknown.
func (c *Core) adoptStrays(t *taskRec) {
	for i := range uint32(max(t.nret, 0)) {
		o := t.ret(i)
		s := c.strays[o.id]
		if s == nil {
			continue
		}
		c.adoptStray(o, s)
	}
}

// adoptStray lets an object take over what was counted for its name.
func (c *Core) adoptStray(o, s *objRec) {
	delete(c.strays, o.id)
	o.holder, o.more, o.tasks, o.objs, o.lineage = s.holder, s.more, s.tasks, s.objs, s.lineage
	s.holder, s.more, s.tasks, s.objs, s.lineage = nil, nil, 0, 0, 0
	if s.flags&objPromised != 0 { // somebody may wait for it already
		o.waits, s.waits = s.waits, nil
		o.flags |= s.flags & (objGet | objGetFetch | objPromised)
		s.flags &^= objPromised
		c.loosen(o) // as the stray may have been
	}
}

// stray gives the record of an object that is referred to but unknown.
func (c *Core) stray(id ids.ObjectID) *objRec {
	if c.isForeign(id) {
		return c.foreign(id)
	}
	o := &objRec{id: id, state: object.Failed, flags: objStray}
	o.res = &wire.Result{Kind: wire.ResultError, Err: c.unknown(id)}
	c.strays[id] = o
	return o
}

func (c *Core) unknown(id ids.ObjectID) *errs.Error {
	if t := c.tasks.task(id.Task); t != nil && !id.IsPut() && t.ret0.state == object.Failed { // one return stands for more than it may have
		return t.ret0.res.Err
	}
	return errs.New(errs.CodeObjectFreed, "object %v: its last reference was released; hold a reference for as long as it is used", id)
}

const manyKids = 1024

// addKid notes who submitted a task, for recursive cancels. A long list is cleared of the
// tasks that have ended before it grows.
func (c *Core) addKid(parent, kid ids.TaskID) {
	ks := c.kids[parent]
	if len(ks) >= manyKids && len(ks) == cap(ks) {
		live := ks[:0]
		for _, id := range ks {
			if t := c.tasks.task(id); t != nil && !t.state.Terminal() {
				live = append(live, id)
			}
		}
		ks = live
	}
	c.kids[parent] = append(ks, kid)
}
