package owner

import (
	"slices"

	"mobula/internal/ids"
	"mobula/objectstore"
	"mobula/raylet/owner/object"
	"mobula/raylet/owner/record"
	"mobula/wire"
)

// giveHandle gives a client a handle; a handle is held or not, clients count by themselves.
func (c *Core) giveHandle(cl *clientRec, o *objRec) {
	if o.holder == cl || cl.gone {
		return
	}
	c.revive(o)
	switch {
	case o.holder == nil:
		o.holder = cl
	case o.more == nil:
		o.more = &[]*clientRec{cl}
	case slices.Contains(*o.more, cl):
		return
	default:
		*o.more = append(*o.more, cl)
	}
	cl.handles++
}

// takeHandle takes a client's handle, and is false if it had none.
func (c *Core) takeHandle(cl *clientRec, o *objRec) bool {
	switch {
	case o.holder == cl:
		fetch, waits := o.takeGet()
		o.holder = nil
		if waits {
			c.waitGet(cl, o, fetch) // as one who holds nothing
		}
		if o.more != nil {
			m := *o.more
			o.holder = m[len(m)-1]
			m[len(m)-1] = nil
			*o.more = m[:len(m)-1]
			if len(m) == 1 {
				o.more = nil
			}
		}
	case o.more != nil:
		i := slices.Index(*o.more, cl)
		if i < 0 {
			return false
		}
		*o.more = slices.Delete(*o.more, i, i+1)
		if len(*o.more) == 0 {
			o.more = nil
		}
	default:
		return false
	}
	cl.handles--
	c.loosen(o)
	return true
}

func (o *objRec) heldBy(cl *clientRec) bool {
	return o.holder == cl || o.more != nil && slices.Contains(*o.more, cl)
}

func (c *Core) release(cl *clientRec, id ids.ObjectID) {
	if id == id.Task.Stream() {
		if t := c.streaming(id.Task); t != nil {
			c.leaveStream(t, cl)
		}
		return
	}
	if o := c.object(id); o != nil {
		c.takeHandle(cl, o)
	}
}

// addRef is a borrow: the client found the reference in a value, which holds it until now.
func (c *Core) addRef(cl *clientRec, id ids.ObjectID) {
	o := c.known(id)
	if o == nil {
		return // freed before; its Get says so
	}
	c.giveHandle(cl, o)
	if o.flags&objHeld != 0 {
		c.taken(o)
	}
}

// ensure finds an object or makes a stray, so that what is counted up can be counted down.
func (c *Core) ensure(id ids.ObjectID) *objRec {
	if o := c.object(id); o != nil {
		return o
	}
	return c.stray(id)
}

// revive brings an object back that had been counted out, because its task's record is
// still there for another return.
func (c *Core) revive(o *objRec) {
	if o.flags&objDead != 0 {
		o.flags &^= objDead
		o.rec.live++
	}
}

// loosen notes that an object lost a reference; settleRefs looks at it.
func (c *Core) loosen(o *objRec) {
	if o.flags&objLoose == 0 && (!o.held() || o.flags&objPromised != 0) {
		o.flags |= objLoose
		c.loose = append(c.loose, o)
	}
}

// eachRef calls f for every object a spec uses: as an argument, inside an argument's value,
// and the handle of the actor it calls. What f does must not depend on the order.
func (c *Core) eachRef(spec *wire.TaskSpec, f func(*Core, *objRec)) {
	for i := range spec.Args {
		a := &spec.Args[i]
		if !a.Ref.IsZero() {
			f(c, c.ensure(a.Ref))
		}
		for _, id := range a.Value.Refs {
			f(c, c.ensure(id))
		}
	}
	if spec.Kind == wire.TaskActorCall && spec.Actor.Job() == c.cfg.Job {
		f(c, c.ensure(ids.TaskID(spec.Actor).Return(0)))
	}
}

func holdForTask(c *Core, o *objRec)    { c.revive(o); o.tasks++ }
func releaseByTask(c *Core, o *objRec)  { o.tasks--; c.loosen(o) }
func holdLineage(c *Core, o *objRec)    { c.revive(o); o.lineage++ }
func releaseLineage(c *Core, o *objRec) { o.lineage--; c.loosen(o) }

// holdArgs counts the objects a live task uses.
func (c *Core) holdArgs(t *taskRec) {
	if t.flags&taskHolds == 0 {
		t.flags |= taskHolds
		c.eachRef(t.spec, holdForTask)
	}
}

// unholdArgs gives up what holdArgs counted.
func (c *Core) unholdArgs(t *taskRec) {
	if t.flags&taskHolds == 0 {
		return
	}
	t.flags &^= taskHolds
	if t.spec != nil { // a spec that was paged out uses nothing
		c.eachRef(t.spec, releaseByTask)
	}
}

// settleRefs drops what nothing refers to any more, and what that held in turn.
func (c *Core) settleRefs() {
	if len(c.silent) > 0 {
		return // other owners may have what nothing else refers to
	}
	for len(c.loose) > 0 {
		n := len(c.loose) - 1
		o := c.loose[n]
		c.loose[n] = nil
		c.loose = c.loose[:n]
		o.flags &^= objLoose
		if !o.held() {
			c.drop(o)
		} else if o.flags&objPromised != 0 {
			c.maybeUnneeded(o)
		}
	}
}

// drop frees the value of an object out of scope and, where lineage does not need it
// either, its record. A small value stays while lineage needs it: that is cheaper than to
// keep what makes it.
func (c *Core) drop(o *objRec) {
	if o.flags&objForeign != 0 {
		c.dropForeign(o)
		return
	}
	if o.flags&objPromised != 0 {
		c.maybeUnneeded(o)
	}
	switch o.state {
	case object.Pending:
		if o.flags&(objStray|objPromised) == objStray {
			c.forgetObject(o) // a promise that was given up: its task, if it comes, has a return like any other
		}
		return // looked at again when it is resolved
	case object.Inline, object.Failed:
		if o.lineage > 0 {
			return
		}
		c.dropValue(o)
	case object.Stored:
		if o.lineage > 0 && o.flags&objPacked != 0 {
			return // it was small, and lies where small values go when there are many
		}
		c.frees = append(c.frees, o.id)
		c.dropValue(o)
	}
	if o.lineage > 0 {
		return
	}
	if o.rec == nil {
		c.forgetObject(o)
		return
	}
	if o.flags&objDead == 0 {
		o.flags |= objDead
		o.rec.live--
	}
	if o.rec.isCreation() {
		c.handleGone(o.rec.actor)
	}
	if o.rec.live == 0 {
		c.reap(o.rec)
	}
}

func (c *Core) dropValue(o *objRec) {
	c.budget.drop(o)
	res := o.res
	c.moveObject(o, object.Drop)
	o.res = nil
	o.flags &^= objArgErr | objPacked
	c.dropInner(inside(res))
}

// forgetObject removes the record of a put or a stray.
func (c *Core) forgetObject(o *objRec) {
	if o.flags&objStray != 0 {
		delete(c.strays, o.id)
		return
	}
	c.puts.remove(&o.id)
	c.forgot = append(c.forgot, o.id)
	c.cookies = append(c.cookies, &o.cookie)
	if cks := c.putCookies[o.id]; cks != nil {
		c.cookies = append(c.cookies, cks...)
		delete(c.putCookies, o.id)
	}
}

// reap removes the record of a task that has ended and whose returns nothing refers to.
func (c *Core) reap(t *taskRec) {
	if !t.state.Terminal() || t.live > 0 || t.flags&taskReaped != 0 || t.isCreation() && !t.actor.over() {
		return
	}
	t.flags |= taskReaped
	c.unholdArgs(t)
	c.dropLineage(t)
	c.byState[t.state]--
	c.tasks.remove(&t.ret0.id)
	c.reaped = append(c.reaped, t)
	if t.isCreation() {
		c.setCause(t.actor, nil, nil)
		delete(c.actors, t.actor.id)
	}
	c.forgot = append(c.forgot, ids.ObjectID{Task: t.id(), Index: record.WholeTask})
	c.cookies = append(c.cookies, &t.cookie, &t.doneAt)
	if t.ret0.flags&objLogged != 0 {
		c.freeCookie(&t.ret0)
	}
	if t.x == nil {
		return
	}
	c.cookies = append(c.cookies, t.x.cookies...)
	c.budget.returns -= int64(len(t.x.more)) * returnCost
	for i := range t.x.more {
		c.freeCookie(&t.x.more[i])
	}
	if t.x.stream != nil {
		c.streams--
		t.x.stream.eachItem(c.freeCookie)
	}
}

func (c *Core) freeCookie(o *objRec) { c.cookies = append(c.cookies, &o.cookie) }

// flushFrees tells the store what to free, in one message.
func (c *Core) flushFrees() {
	if len(c.frees) > 0 {
		c.toStore(objectstore.Free{IDs: slices.Clone(c.frees)})
		c.frees = c.frees[:0]
	}
}
