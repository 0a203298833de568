package owner

import (
	"slices"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/objectstore"
	"mobula/raylet/owner/object"
	"mobula/raylet/owner/task"
	"mobula/wire"
)

// await looks at a task's arguments: it is ready, or waits for those that are not resolved.
// Arguments whose values were dropped are made again.
func (c *Core) await(t *taskRec) {
	if t.state != task.PendingArgs {
		return // it ended meanwhile
	}
	t.gen++
	t.deps = 0
	if t.spec != nil {
		for i := range t.spec.Args {
			if id := t.spec.Args[i].Ref; !id.IsZero() {
				c.waitFor(t, c.ensure(id))
			}
		}
	}
	if t.deps == 0 {
		c.argsReady(t)
	} else if t.flags&taskTurn != 0 {
		c.lineUpAgain(t)
	}
}

func (c *Core) waitFor(t *taskRec, o *objRec) {
	if o.state == object.Freed && !c.remake(o) {
		return // argsReady sees it
	}
	if o.state == object.Pending {
		c.askFor(o)
		w := c.waitsOf(o)
		w.tasks = append(w.tasks, taskWait{t, t.gen})
		t.deps++
	}
}

func (c *Core) waitsOf(o *objRec) *waits {
	if o.waits == nil {
		if n := len(c.waitsFree); n > 0 {
			o.waits, c.waitsFree = c.waitsFree[n-1], c.waitsFree[:n-1]
		} else {
			o.waits = new(waits)
		}
	}
	return o.waits
}

const keepWaits = 4096 // waits kept to be used again

func (c *Core) recycle(w *waits) {
	if len(c.waitsFree) < keepWaits && cap(w.tasks)+cap(w.gets) <= 64 {
		clear(w.tasks)
		clear(w.gets)
		w.tasks, w.gets = w.tasks[:0], w.gets[:0]
		c.waitsFree = append(c.waitsFree, w)
	}
}

// argsReady puts a task whose arguments are all resolved into its queue, or fails it with
// the error of the first that failed.
func (c *Core) argsReady(t *taskRec) {
	if t.state != task.PendingArgs || t.deps > 0 {
		return
	}
	if t.spec != nil {
		for i := range t.spec.Args {
			if id := t.spec.Args[i].Ref; !id.IsZero() {
				if err, passed := c.argError(c.ensure(id)); err != nil {
					c.failByArg(t, err, passed)
					return
				}
			}
		}
	}
	if t.isCall() {
		c.move(t, task.ReadyCall)
		c.callReady(t)
		return
	}
	c.move(t, task.Ready)
	c.enqueue(t)
}

// enqueue puts a ready task into its class's queue.
func (c *Core) enqueue(t *taskRec) {
	k := t.class
	if t.flags&taskSolo != 0 && t.x.solo != nil {
		t.x.solo = c.classAgain(t.x.solo)
		k = t.x.solo
	}
	if k.infeasible != nil {
		c.failInfeasible(t, k.infeasible)
		return
	}
	if t.flags&taskFront != 0 {
		t.flags &^= taskFront
		k.ready.pushFront(t)
	} else {
		k.ready.pushBack(t)
	}
	c.touch(k)
}

func (c *Core) touch(k *classRec) {
	if !k.dirty {
		k.dirty = true
		c.dirtyClass = append(c.dirtyClass, k)
	}
}

// argError gives the error that stands for an argument, and whether it came from an
// argument itself and so names the place already.
func (c *Core) argError(o *objRec) (err *errs.Error, passed bool) {
	switch o.state {
	case object.Failed:
		return o.res.Err, o.flags&objArgErr != 0
	case object.Freed:
		return c.cannotRemake(o), false
	}
	return nil, false
}

// failByArg fails a task because an argument failed. The first task in a chain wraps the
// cause; those after it pass the same error on, so that a long chain stays cheap to read.
func (c *Core) failByArg(t *taskRec, err *errs.Error, passed bool) {
	if !passed {
		err = &errs.Error{
			Code: err.Code, Name: err.Name, Task: t.id().String(),
			Msg:   "an argument of " + t.name() + " failed: " + err.Error(),
			Cause: []*errs.Error{err},
		}
	}
	c.fail(t, err)
	for i := range uint32(max(t.nret, 0)) {
		if o := t.ret(i); o.state == object.Failed {
			o.flags |= objArgErr
		}
	}
}

// argState tells what the arguments of a task that is about to run need.
type argState uint8

const (
	argsNone   argState = iota // no references, or inline values only
	argsStored                 // some are to be pinned
	argsHeavy                  // inline values are too much for a message
	argsAgain                  // some were lost meanwhile: wait again
)

func (c *Core) argsOf(t *taskRec) argState {
	st, heavy := argsNone, int64(0)
	for i := range t.spec.Args {
		id := t.spec.Args[i].Ref
		if id.IsZero() {
			continue
		}
		switch o := c.object(id); {
		case o == nil || !o.state.Resolved() || o.state == object.Failed:
			return argsAgain
		case o.state == object.Stored:
			st = argsStored
		case o.packable():
			heavy += sizeOf(o.res)
		}
	}
	if heavy > c.cfg.MessageArgs {
		return argsHeavy
	}
	return st
}

// packArgs lets a task wait until the store has its inline arguments.
func (c *Core) packArgs(t *taskRec) {
	c.move(t, task.Requeue)
	t.flags |= taskFront
	t.gen++
	t.deps = 0
	var vs []objectstore.PackValue
	for i := range t.spec.Args {
		id := t.spec.Args[i].Ref
		if id.IsZero() {
			continue
		}
		o := c.object(id)
		if o.state != object.Inline || !o.packable() {
			continue
		}
		if o.flags&objPacking == 0 {
			vs = append(vs, c.budget.ask(o))
		}
		w := c.waitsOf(o)
		w.tasks = append(w.tasks, taskWait{t, t.gen})
		t.deps++
	}
	c.askPack(vs)
	if t.flags&taskTurn != 0 {
		c.lineUpAgain(t)
	}
}

// pinArgs asks the store to pin the stored arguments of an attempt for its worker.
func (c *Core) pinArgs(t *taskRec, l *leaseRec) {
	t.flags |= taskPinned
	t.lease = l
	l.fetching = append(l.fetching, t)
	c.move(t, task.Fetch)
	c.pinAgain(t, l)
}

// storedArgs lists the arguments that lie in the store, each once.
func (c *Core) storedArgs(t *taskRec) []ids.ObjectID {
	out := make([]ids.ObjectID, 0, len(t.spec.Args))
	seen := make(map[ids.ObjectID]struct{}, len(t.spec.Args))
	for i := range t.spec.Args {
		id := t.spec.Args[i].Ref
		if id.IsZero() {
			continue
		}
		if o := c.object(id); o == nil || o.state != object.Stored {
			continue
		}
		if _, dup := seen[id]; !dup {
			seen[id] = struct{}{}
			out = append(out, id)
		}
	}
	return out
}

// unpinArgs gives the pins of the latest attempt up.
func (c *Core) unpinArgs(t *taskRec) {
	if t.flags&taskPinned != 0 {
		t.flags &^= taskPinned
		c.toStore(objectstore.UnpinArgs{Task: t.id(), Attempt: t.start})
	}
}

// argsPinned pushes the task whose arguments lie ready.
func (c *Core) argsPinned(m objectstore.ArgsPinned) {
	t := c.tasks.task(m.Task)
	if t == nil || t.start != m.Attempt || c.ask(t) != m.Ask || t.state != task.PendingFetch && t.state != task.PendingStore {
		return // withdrawn by UnpinArgs, which is on its way
	}
	l := t.lease
	c.unfetch(l, t)
	args, ok := c.argValues(t, m.Values)
	if !ok {
		c.unpinArgs(t)
		c.unassign(t)
		c.requeue(t, true)
		c.touchLease(l)
		return
	}
	c.push(l, t, args)
}

// unfetch ends the wait for a task's arguments. Calls that waited behind it go on: it may be waiting for one of them.
func (c *Core) unfetch(l *leaseRec, t *taskRec) {
	if i := slices.Index(l.fetching, t); i >= 0 {
		l.fetching = slices.Delete(l.fetching, i, i+1)
		if l.actor != nil {
			c.touchActor(l.actor)
		}
	}
}

func (c *Core) argsWait(m objectstore.ArgsWait) {
	if t := c.tasks.task(m.Task); t != nil && t.start == m.Attempt && c.ask(t) == m.Ask && t.state == task.PendingFetch {
		c.move(t, task.NoRoom)
	}
}

// argsRefused fails a task whose arguments can never be in memory together, or now for want of
// disk or memory, as a result without room does. The arguments themselves are intact.
func (c *Core) argsRefused(m objectstore.ArgsRefused) {
	t := c.tasks.task(m.Task)
	if t == nil || t.start != m.Attempt || c.ask(t) != m.Ask || t.state != task.PendingFetch && t.state != task.PendingStore {
		return
	}
	err := &errs.Error{
		Code: m.Err.Code, Name: t.name(), Task: t.id().String(),
		Msg: "the arguments of " + t.name() + " have no room: " + m.Err.Msg, Cause: []*errs.Error{m.Err},
	}
	if t.isCreation() {
		c.killActorWith(t.actor, err)
		return
	}
	c.withdraw(t)
	c.fail(t, err)
}

// argValues makes the arguments as the worker gets them. It is false if one was lost since
// its pin was asked for.
func (c *Core) argValues(t *taskRec, pinned []objectstore.PinnedValue) ([]wire.ArgValue, bool) {
	n := 0
	for i := range t.spec.Args {
		if !t.spec.Args[i].Ref.IsZero() {
			n++
		}
	}
	if n == 0 {
		return nil, true
	}
	at := make(map[ids.ObjectID]int, len(pinned))
	for i := range pinned {
		at[pinned[i].ID] = i
	}
	out := make([]wire.ArgValue, 0, n)
	for i := range t.spec.Args {
		id := t.spec.Args[i].Ref
		if id.IsZero() {
			continue
		}
		o := c.object(id)
		if o == nil || o.res == nil {
			return nil, false
		}
		v := wire.ArgValue{Index: int32(i), Result: *o.res}
		if j, ok := at[id]; ok {
			v.Extent = pinned[j].Extent
			v.Result.Kind = wire.ResultStored
			v.Result.Value.Data = nil
		} else if o.state != object.Inline {
			return nil, false
		}
		out = append(out, v)
	}
	return out, true
}
