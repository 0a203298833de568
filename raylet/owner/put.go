package owner

import (
	"mobula/internal/ids"
	"mobula/objectstore"
	"mobula/raylet/owner/object"
	"mobula/wire"
)

// putValue makes an inline object. One that is known already, because its task runs again,
// stays as it is.
func (c *Core) putValue(cl *clientRec, m *wire.PutValue) {
	if c.cfg.CreditWindow > 0 {
		c.spend(cl, wire.CostOfValue(&m.Value))
	}
	if !m.ID.IsPut() {
		return // a name that only a task's return can have
	}
	o := c.object(m.ID)
	if o != nil && o.flags&objStray == 0 {
		c.giveHandle(cl, o)
		return
	}
	o = c.newPut(m.ID)
	c.giveHandle(cl, o)
	c.stats.Puts++
	res := &wire.Result{Kind: wire.ResultInline, Value: m.Value, Size: uint64(len(m.Value.Data))}
	c.logObject(o, res, 0)
	c.resolve(o, res, object.SetInline)
}

// newPut makes the record of a put and enters it. What was counted for its name while it was
// unknown goes over to it.
func (c *Core) newPut(id ids.ObjectID) *objRec {
	o := &objRec{id: id}
	if s := c.strays[id]; s != nil {
		c.adoptStray(o, s)
	}
	c.puts.add(o)
	return o
}

// seal decides whether an extent that a client has written becomes the object. The first
// attempt wins; the store frees the others.
func (c *Core) seal(cl *clientRec, m *wire.Seal) {
	o := c.object(m.ID)
	if o == nil || o.flags&objStray != 0 {
		o = c.sealTarget(m.ID)
	}
	if o == nil || o.state != object.Pending || o.rec != nil && !c.runs(cl, o.rec, m.Attempt) {
		if o != nil && o.state == object.Stored && o.attempt == m.Attempt {
			c.toStore(sealObject(cl, m)) // told again, or made again by an attempt that a lost core had not counted
		} else {
			c.toStore(objectstore.DropAttempt{ID: m.ID, Attempt: m.Attempt})
		}
		if o != nil && o.rec == nil {
			c.giveHandle(cl, o)
		}
		return
	}
	if o.rec == nil {
		c.giveHandle(cl, o)
		c.stats.Puts++
	}
	res := &wire.Result{Kind: wire.ResultStored, Value: wire.Value{Meta: m.Value.Meta, Refs: m.Value.Refs}, Size: m.Size}
	o.attempt = m.Attempt
	c.logObject(o, res, m.Attempt)
	c.toStore(sealObject(cl, m))
	c.resolve(o, res, object.SetStored)
}

func sealObject(cl *clientRec, m *wire.Seal) objectstore.SealObject {
	return objectstore.SealObject{Client: cl.id, ID: m.ID, Attempt: m.Attempt, Size: m.Size, Meta: m.Value.Meta}
}

// sealTarget makes the record of a put, or of a stream's item, that is sealed for the first
// time; nil if there can be none.
func (c *Core) sealTarget(id ids.ObjectID) *objRec {
	if id.IsPut() {
		return c.newPut(id)
	}
	t := c.tasks.task(id.Task)
	if t == nil || t.nret != wire.Streaming || t.state.Terminal() {
		return nil
	}
	return c.newItem(t, id.Index)
}

// runs tells whether an attempt at a task is the one under way on a client. While it is not
// known what runs where, any may be.
func (c *Core) runs(cl *clientRec, t *taskRec, attempt uint32) bool {
	if t.state.Terminal() || t.isCreation() {
		return false
	}
	return c.pause != nil || t.start == attempt && t.state.OnWorker() && t.lease.worker == cl
}
