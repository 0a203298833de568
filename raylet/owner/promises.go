package owner

import (
	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/raylet/owner/object"
)

// A promise is the first return of a task that another one, which runs or will, is to submit: an object
// with a name, holders and waiters, and no task yet. It is kept with the strays until its task comes
// (adoptStrays), or the one that promised it has ended.

// promise makes what a new task promises. What is there already needs no promise: the task runs again.
func (c *Core) promise(t *taskRec) {
	if len(t.spec.Promises) == 0 {
		return
	}
	t.ext().promises = t.spec.Promises
	for _, n := range t.x.promises {
		id := promised(t, n)
		if o := c.object(id); o == nil {
			c.strays[id] = &objRec{id: id, state: object.Pending, flags: objStray | objPromised}
		}
	}
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
		if o := c.object(promised(t, n)); o != nil {
			c.giveHandle(cl, o)
			if o.state == object.Freed {
				c.remake(o)
			}
		}
	}
}

// breakPromises fails what a task that has ended promised and did not submit.
func (c *Core) breakPromises(t *taskRec, err *errs.Error) {
	if t.x == nil {
		return
	}
	for _, n := range t.x.promises {
		o := c.strays[promised(t, n)]
		if o == nil || o.state != object.Pending {
			continue
		}
		if err == nil {
			err = errs.New(errs.CodeReturnMismatch, "%s ended and has not made task %d, whose result it promised", t.name(), n)
		}
		c.resolve(o, errorResult(err), object.SetError)
	}
	t.x.promises = nil
}

// forgetPromises is breakPromises of a task that ended before this core was built: nobody waits yet.
func (c *Core) forgetPromises(t *taskRec) {
	if t.x == nil {
		return
	}
	for _, n := range t.x.promises {
		if id := promised(t, n); c.strays[id] != nil {
			delete(c.strays, id)
		}
	}
	t.x.promises = nil
}
