package owner

import (
	"slices"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/raylet/owner/object"
	"mobula/wire"
)

// A promise is the first return of a task that another one, which runs or will, is to submit: an object
// with a name, holders and waiters, and no task yet. It is kept with the strays until its task comes
// (adoptStrays), or the one that promised it has ended. When nobody can ask for the object any more but
// the worker that runs who promised it, the promise is given up, and that worker is told (wire.Unneeded).
// A parent that runs again and submits who promised it wants it once more: then that one runs once more too.
//
// A call of an actor promises what it never submits: so whoever has no result of it is told of its end. That is not given up before.

// promise is one that is neither broken nor given up. Its object is in the tables, and marked.
type promise struct {
	by *taskRec
	n  uint32
}

// endOfCall tells whether the promised object o is the end of a call that is still to come.
func (p promise) endOfCall(o *objRec) bool { return p.by.isCall() && o.flags&objStray != 0 }

// promise makes what a new task promises; an actor's creation promises nothing. What is there already is kept.
func (c *Core) promise(t *taskRec) {
	if len(t.spec.Promises) == 0 || t.spec.Kind == wire.TaskActorCreate {
		return
	}
	t.ext().promises = t.spec.Promises
	for _, n := range t.x.promises {
		c.promiseOne(t, n)
	}
}

func (c *Core) promiseOne(t *taskRec, n uint32) {
	id := promised(t, n)
	o := c.object(id)
	if o == nil {
		o = &objRec{id: id, state: object.Pending, flags: objStray}
		c.strays[id] = o
	}
	o.flags |= objPromised
	c.promises[id] = promise{t, n}
}

func promised(t *taskRec, n uint32) ids.ObjectID {
	return ids.Derive(t.id(), uint64(n)).Return(0)
}

// givePromises gives a client its handles on what a task promises.
func (c *Core) givePromises(cl *clientRec, t *taskRec) {
	if t.x == nil {
		return
	}
	for _, n := range t.x.promises {
		id := promised(t, n)
		if _, ok := c.promises[id]; !ok {
			c.promiseOne(t, n)
			t.x.unneeded--
			t.x.again = t.x.again || t.state.OnWorker() // which was told that it need not make this
		}
		o := c.object(id)
		c.giveHandle(cl, o)
		c.loosen(o) // a client that is gone holds nothing
		if o.state == object.Freed {
			c.remake(o)
		}
	}
}

// maybeUnneeded gives a promise up if who promised it is the last to hold the object.
func (c *Core) maybeUnneeded(o *objRec) {
	p, ok := c.promises[o.id]
	if !ok || p.endOfCall(o) || o.tasks+o.objs > 0 || o.more != nil || o.holder != nil && (p.by.lease == nil || o.holder != p.by.lease.worker) {
		return
	}
	if o.waits != nil && slices.ContainsFunc(o.waits.gets, func(g getWait) bool { return g.client != o.holder }) {
		return // it released its handle and still expects an answer
	}
	c.giveUp(o)
}

// giveUp ends a promise that nobody needs kept.
func (c *Core) giveUp(o *objRec) {
	p, ok := c.promises[o.id]
	if !ok {
		return
	}
	delete(c.promises, o.id)
	o.flags &^= objPromised
	p.by.x.unneeded++
	if p.by.state.OnWorker() {
		c.unneeded = append(c.unneeded, p)
	}
}

// remindUnneeded tells of what was given up before this attempt.
func (c *Core) remindUnneeded(t *taskRec) {
	if t.x == nil || t.x.unneeded == 0 {
		return
	}
	for _, n := range t.x.promises {
		if _, ok := c.promises[promised(t, n)]; !ok {
			c.unneeded = append(c.unneeded, promise{t, n})
		}
	}
}

// flushUnneeded tells workers, one message a task, behind the attempts that were pushed in this step.
func (c *Core) flushUnneeded() {
	for rest := c.unneeded; len(rest) > 0; {
		t := rest[0].by
		var ns []uint32
		later := rest[:0]
		for _, p := range rest {
			if p.by == t {
				ns = append(ns, p.n)
			} else {
				later = append(later, p)
			}
		}
		rest = later
		if t.state.OnWorker() && t.lease != nil {
			c.toClient(t.lease.worker, &wire.Unneeded{Task: t.id(), Numbers: ns})
		}
	}
	clear(c.unneeded)
	c.unneeded = c.unneeded[:0]
}

// breakPromises fails what a task that has ended promised and did not submit.
func (c *Core) breakPromises(t *taskRec, err *errs.Error) {
	if t.x == nil {
		return
	}
	for _, n := range t.x.promises {
		id := promised(t, n)
		if _, ok := c.promises[id]; !ok {
			continue
		}
		delete(c.promises, id)
		o := c.object(id)
		o.flags &^= objPromised
		if o.flags&objStray == 0 || o.state != object.Pending {
			continue
		}
		if err == nil {
			err = errs.New(errs.CodeReturnMismatch, "%s ended and has not made task %d, whose result it promised", t.name(), n)
		}
		c.resolve(o, errorResult(err), object.SetError)
	}
	t.x.promises, t.x.unneeded, t.x.again = nil, 0, false
}
