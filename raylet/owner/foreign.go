package owner

import (
	"slices"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/objectstore"
	"mobula/raylet/owner/object"
	"mobula/wire"
)

// An object of another job that something here refers to has a record among the strays, for as long as that is so. With the record the
// owner of this job has a handle at the object's own, and what it was told of the value, when somebody asked for it first. Nothing of the
// value is this owner's to pack, free or make again.

// foreign makes the record of another job's object, and borrows it.
func (c *Core) foreign(id ids.ObjectID) *objRec {
	o := &objRec{id: id, state: object.Pending, flags: objStray | objForeign}
	c.strays[id] = o
	c.toOwner(id.Job(), &wire.AddRef{ID: id})
	return o
}

// known finds an object, and makes the record of another job's that has none yet; nil: one of this job is unknown.
func (c *Core) known(id ids.ObjectID) *objRec {
	if o := c.object(id); o != nil || !c.isForeign(id) {
		return o
	}
	return c.foreign(id)
}

func (c *Core) isForeign(id ids.ObjectID) bool { return id.Job() != c.cfg.Job }

// askFor asks the owner of another job's object for it, since somebody waits.
func (c *Core) askFor(o *objRec) {
	if o.flags&(objForeign|objAsked) == objForeign && o.state == object.Pending {
		o.flags |= objAsked
		c.toOwner(o.id.Job(), &wire.Get{ID: o.id})
	}
}

// foreignResolved is what an object's own owner says it is.
func (c *Core) foreignResolved(m *wire.Resolved) {
	o := c.strays[m.ID]
	if o == nil || o.flags&objForeign == 0 || o.state != object.Pending {
		return // dropped meanwhile, or told before
	}
	o.flags &^= objAsked
	res := m.Result
	switch res.Kind {
	case wire.ResultInline:
		c.resolve(o, &res, object.SetInline)
	case wire.ResultStored:
		c.resolve(o, &res, object.SetStored)
	default:
		c.resolve(o, errorResult(res.Err), object.SetError)
	}
}

// foreignGone has an object's own owner find a way to a value that the store does not have any more, and asks for it anew.
func (c *Core) foreignGone(o *objRec, m objectstore.Lost) {
	c.toOwner(o.id.Job(), objectstore.Lost{ID: o.id, Attempt: m.Attempt, Err: m.Err, Unsealed: m.Unsealed})
	c.dropInner(inside(o.res))
	c.moveObject(o, object.Lose)
	o.res = nil
}

// loseForeign has an error stand for the objects of a job that has ended.
func (c *Core) loseForeign(job ids.JobID, err *errs.Error) {
	for _, o := range c.foreignOf(job) {
		switch o.state {
		case object.Pending:
			c.resolve(o, errorResult(err), object.SetError)
		case object.Stored:
			c.dropInner(inside(o.res))
			c.moveObject(o, object.SetError)
			o.res = errorResult(err)
		}
	}
}

// foreignOf gives the objects of another job that there are records of, in order.
func (c *Core) foreignOf(job ids.JobID) []*objRec {
	var out []*objRec
	for id, o := range c.strays {
		if id.Job() == job && o.flags&objForeign != 0 {
			out = append(out, o)
		}
	}
	slices.SortFunc(out, func(a, b *objRec) int { return a.id.Compare(b.id) })
	return out
}

// tellHeld tells another owner which of its objects are held here, and asks again for those that are waited for.
func (c *Core) tellHeld(job ids.JobID) {
	held := c.foreignOf(job)
	m := &wire.Holdings{Component: wire.ComponentOwner}
	for _, o := range held {
		m.Handles = append(m.Handles, o.id)
	}
	c.toOwner(job, m)
	for _, o := range held {
		if o.flags&objAsked != 0 && o.state == object.Pending {
			c.toOwner(job, &wire.Get{ID: o.id})
		}
	}
}

// dropForeign gives back an object that nothing here refers to any more. While somebody waits for it, it stays.
func (c *Core) dropForeign(o *objRec) {
	if o.lineage > 0 || o.waits != nil {
		return
	}
	delete(c.strays, o.id)
	res := o.res
	o.state, o.res = object.Freed, nil
	c.dropInner(inside(res))
	c.toOwner(o.id.Job(), &wire.Release{IDs: []ids.ObjectID{o.id}})
}
