package owner

import (
	"slices"

	"mobula/internal/ids"
	"mobula/raylet/owner/object"
	"mobula/wire"
)

// giveHandle gives a client a handle; a handle is held or not, clients count by themselves.
func (os *objects) giveHandle(cl *clientRec, o *objRec) {
	if o.holder == cl || cl.gone {
		return
	}
	os.revive(o)
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
func (os *objects) takeHandle(cl *clientRec, o *objRec) bool {
	switch {
	case o.holder == cl:
		fetch, waits := o.takeGet()
		o.holder = nil
		if waits {
			os.up.waitGet(cl, o, fetch) // as one who holds nothing
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
	os.queueRecount(o)
	return true
}

// addRef is a borrow: the client found the reference in a value, which holds it until now.
func (os *objects) addRef(cl *clientRec, id ids.ObjectID) {
	o := os.known(id)
	if o == nil {
		return // freed before; its Get says so
	}
	os.giveHandle(cl, o)
	if o.flags&objHeld != 0 {
		os.up.taken(o)
	}
}

// ensure finds an object or makes a placeholder, so that what is counted up can be counted down.
func (os *objects) ensure(id ids.ObjectID) *objRec {
	if o := os.object(id); o != nil {
		return o
	}
	return os.placeholder(id)
}

// revive brings an object back that had been counted out, because its task's record is
// still there for another return.
func (os *objects) revive(o *objRec) {
	if o.flags&objDead != 0 {
		o.flags &^= objDead
		o.rec.live++
	}
}

// queueRecount notes that an object lost a reference; collectUnreferenced looks at it.
func (os *objects) queueRecount(o *objRec) {
	if o.flags&objRecount == 0 && (!o.held() || o.flags&objPromised != 0) {
		o.flags |= objRecount
		os.recountQueue = append(os.recountQueue, o)
	}
}

// eachRef calls f for every object a spec uses: as an argument, inside an argument's value,
// and the handle of the actor it calls. What f does must not depend on the order.
func (os *objects) eachRef(spec *wire.TaskSpec, f func(*objects, *objRec)) {
	for i := range spec.Args {
		a := &spec.Args[i]
		if !a.Ref.IsZero() {
			f(os, os.ensure(a.Ref))
		}
		for _, id := range a.Value.Refs {
			f(os, os.ensure(id))
		}
	}
	if spec.Kind == wire.TaskActorCall && spec.Actor.Job() == os.cfg.Job {
		f(os, os.ensure(ids.TaskID(spec.Actor).Return(0)))
	}
}

func holdForTask(os *objects, o *objRec)    { os.revive(o); o.tasks++ }
func releaseByTask(os *objects, o *objRec)  { o.tasks--; os.queueRecount(o) }
func holdLineage(os *objects, o *objRec)    { os.revive(o); o.lineage++ }
func releaseLineage(os *objects, o *objRec) { o.lineage--; os.queueRecount(o) }

// holdArgs counts the objects a live task uses.
func (os *objects) holdArgs(t *taskRec) {
	if t.flags&taskHolds == 0 {
		t.flags |= taskHolds
		os.eachRef(t.spec, holdForTask)
	}
}

// releaseArgs gives up what holdArgs counted.
func (os *objects) releaseArgs(t *taskRec) {
	if t.flags&taskHolds == 0 {
		return
	}
	t.flags &^= taskHolds
	if t.spec != nil { // a spec that was paged out uses nothing
		os.eachRef(t.spec, releaseByTask)
	}
}

// collectUnreferenced drops what nothing refers to any more, and what that held in turn.
func (os *objects) collectUnreferenced() {
	if len(os.silent) > 0 {
		return // other owners may have what nothing else refers to
	}
	for len(os.recountQueue) > 0 {
		n := len(os.recountQueue) - 1
		o := os.recountQueue[n]
		os.recountQueue[n] = nil
		os.recountQueue = os.recountQueue[:n]
		o.flags &^= objRecount
		if !o.held() {
			os.drop(o)
		} else if o.flags&objPromised != 0 {
			os.up.maybeUnneeded(o)
		}
	}
}

// drop frees the value of an object out of scope and, where lineage does not need it
// either, its record. A small value stays while lineage needs it: that is cheaper than to
// keep what makes it.
func (os *objects) drop(o *objRec) {
	if o.flags&objBorrowed != 0 {
		os.returnBorrowed(o)
		return
	}
	if o.flags&objPromised != 0 {
		os.up.maybeUnneeded(o)
	}
	tells := o.state == object.Stored || o.bytesInLog() >= logItem
	switch o.state {
	case object.Pending:
		if o.flags&(objPlaceholder|objPromised) == objPlaceholder {
			os.forgetObject(o) // a promise that was given up: its task, if it comes, has a return like any other
		}
		return // looked at again when it is resolved
	case object.Inline, object.Failed:
		if o.lineage > 0 {
			return
		}
		os.dropValue(o)
	case object.Stored:
		if o.lineage > 0 && o.flags&objPacked != 0 {
			return // it was small, and lies where small values go when there are many
		}
		if os.keep(o) {
			return
		}
		if o.lineage > 0 {
			os.freeForLineage(o)
		} else {
			os.copies.free(o)
			os.dropValue(o)
		}
	}
	if o.lineage > 0 {
		return
	}
	if o.rec == nil {
		os.forgetObject(o)
		return
	}
	if o.flags&objDead == 0 {
		o.flags |= objDead
		o.rec.live--
	}
	if o.rec.isCreation() {
		os.up.lastHandleReleased(o.rec.actor)
	}
	if o.rec.live == 0 {
		os.up.reap(o.rec)
	} else if o.rec.nret == wire.Streaming && tells {
		os.journal.logFreed(o)
	}
}

// logItem is how many bytes of a stream's item are worth a record that it was freed, which takes some 40. A stream may go on for ever. One that the store had is told of in any
// case: a rebuilt owner would miss it there.
const logItem = 256

// bytesInLog is how much of an object's value is in the log.
func (o *objRec) bytesInLog() int64 {
	switch {
	case o.res == nil:
		return 0
	case o.flags&objPacked != 0:
		return int64(o.res.Size)
	}
	return sizeOf(o.res)
}

func (os *objects) dropValue(o *objRec) {
	os.budget.drop(o)
	os.keptValues.remove(o.id)
	res := o.res
	os.moveObject(o, object.Drop)
	o.res = nil
	o.flags &^= objArgErr | objPacked
	os.releaseContained(containedIn(res))
}

// forgetObject removes the record of a put or a placeholder.
func (os *objects) forgetObject(o *objRec) {
	if o.flags&objPlaceholder != 0 {
		delete(os.placeholders, o.id)
		return
	}
	os.puts.remove(&o.id)
	os.journal.forget(o.id, o)
	os.journal.cookies = append(os.journal.cookies, &o.cookie)
	os.journal.freePacked(o.id)
}

func (j *journal) freeCookie(o *objRec) { j.cookies = append(j.cookies, &o.cookie) }

// dropHandles takes every handle a client has, at once: of one that says what it holds. One that
// is gone is swept. Either looks at every object: clients end seldom, and a set of handles for
// each would cost every task.
func (os *objects) dropHandles(cl *clientRec) {
	if cl.handles > 0 {
		os.eachObject(func(o *objRec) { os.dropHandle(cl, o) })
	}
}

func (os *objects) dropHandle(cl *clientRec, o *objRec) {
	o.ungetAll(cl)
	os.takeHandle(cl, o)
}
