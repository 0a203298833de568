package owner

import (
	"slices"

	"mobula/internal/ids"
	"mobula/objectstore"
	"mobula/raylet/owner/object"
	"mobula/wire"
)

// get subscribes a client to an object; one Resolved answers.
func (c *Core) get(cl *clientRec, id ids.ObjectID, fetch bool) {
	o := c.known(id)
	if o == nil {
		c.toClient(cl, c.resolvedMsg(wire.Resolved{ID: id, Fetch: fetch, Result: *errorResult(c.unknown(id))}))
		return
	}
	if o.state == object.Freed && !c.remake(o) {
		c.toClient(cl, c.resolvedMsg(wire.Resolved{ID: id, Fetch: fetch, Result: *errorResult(c.cannotRemake(o))}))
		return
	}
	if o.state == object.Pending {
		c.waitGet(cl, o, fetch)
		return
	}
	c.answer(cl, o, fetch)
}

// waitGet notes a get of an object that is not resolved.
func (c *Core) waitGet(cl *clientRec, o *objRec, fetch bool) {
	c.askFor(o)
	if o.holder == cl && o.flags&objGet == 0 {
		o.flags |= objGet
		if fetch {
			o.flags |= objGetFetch
		}
		return
	}
	w := c.waitsOf(o)
	w.gets = append(w.gets, getWait{cl, fetch})
}

// takeGet takes the get of the first holder back, and is false if it has none.
func (o *objRec) takeGet() (fetch, ok bool) {
	fetch, ok = o.flags&objGetFetch != 0, o.flags&objGet != 0
	o.flags &^= objGet | objGetFetch
	return fetch, ok
}

// ungetAll takes a client's gets of an object back.
func (o *objRec) ungetAll(cl *clientRec) {
	if o.holder == cl {
		o.takeGet()
	}
	if o.waits != nil {
		o.waits.gets = slices.DeleteFunc(o.waits.gets, func(g getWait) bool { return g.client == cl })
	}
}

// answer tells a client of a resolved object. A stored one that is to be fetched goes by way
// of the store, which answers when it has pinned it.
func (c *Core) answer(cl *clientRec, o *objRec, fetch bool) {
	if cl.gone {
		return
	}
	if fetch && o.state == object.Stored {
		c.toStore(objectstore.PinForGet{Client: cl.id, Job: c.cfg.Job, ID: o.id, Refs: o.res.Value.Refs})
		return
	}
	if o.state == object.Inline && cl.peer == 0 && !c.mayAnswer(cl, o, fetch) {
		return
	}
	m := c.newResolved()
	m.ID, m.Fetch, m.Result = o.id, fetch, *o.res
	c.toClient(cl, m)
}

// unget withdraws what get asked.
func (c *Core) unget(cl *clientRec, id ids.ObjectID) {
	cl.unread.withdraw(id)
	o := c.object(id)
	if o == nil {
		return
	}
	o.ungetAll(cl)
	c.loosen(o)
	if o.state == object.Stored {
		c.toStore(objectstore.UnpinForGet{Client: cl.id, ID: id})
	}
}

// newResolved gives messages out of a block, to allocate once for many.
func (c *Core) newResolved() *wire.Resolved {
	if len(c.resolvedFree) == 0 {
		c.resolvedFree = make([]wire.Resolved, 16)
	}
	m := &c.resolvedFree[0]
	c.resolvedFree = c.resolvedFree[1:]
	return m
}

func (c *Core) resolvedMsg(r wire.Resolved) *wire.Resolved {
	m := c.newResolved()
	*m = r
	return m
}

// fetchAgain asks the store again for what a client still waits for: the store was
// restarted and has forgotten who asked.
func (c *Core) fetchAgain(cl *clientRec, m *wire.Holdings) {
	if m.Component != wire.ComponentOwner {
		return
	}
	for _, g := range m.Gets {
		if o := c.object(g.ID); g.Fetch && o != nil && o.state == object.Stored {
			c.answer(cl, o, true)
		}
	}
}
