package owner

import (
	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/objectstore"
	"mobula/raylet/owner/object"
	"mobula/raylet/owner/task"
	"mobula/wire"
)

// lost says that the store has no copy of an object. It is made again, or an error stands
// for it from now on; whoever had asked for it waits or gets the error.
func (ln *lineage) lost(m objectstore.Lost) {
	o := ln.objects.object(m.ID)
	if o != nil && o.state == object.Stored {
		switch {
		case o.flags&objBorrowed != 0:
			ln.up.borrowedLost(o, m)
		case !ln.sealAgain(o, m.Unsealed):
			ln.stats.Lost++
			ln.recoverObject(o, m.Err)
		}
	}
	if t := ln.tasks.task(m.Task); t != nil && t.start == m.Attempt && ln.memory.ask(t) == m.Ask && (t.state == task.PendingFetch || t.state == task.PendingStore) {
		l := t.lease
		ln.leases.cancelFetch(l, t)
		t.flags &^= taskPinned // all or none: nothing was pinned
		t.lease = nil
		t.start--
		ln.up.requeue(t, true)
		ln.leases.touchLease(l)
		if l.actor == nil {
			ln.leases.touch(l.class)
		}
	}
	if cl := ln.clients.client(m.Client); cl != nil {
		ln.gets.get(cl, m.ID, true)
	}
}

// sealAgain seals an object that this owner's log has as sealed and the store as being written: the node was killed in between. The
// client that wrote it says so again when it is back, but a reader may come first. It is false where the store has no such extent.
func (ln *lineage) sealAgain(o *objRec, unsealed []objectstore.Unsealed) bool {
	for _, u := range unsealed {
		if u.Attempt == o.attempt {
			ln.toStore(objectstore.SealObject{Client: u.Client, ID: o.id, Attempt: o.attempt, Size: o.res.Size, Meta: o.res.Value.Meta})
			return true
		}
	}
	return false
}

// recoverObject finds a way to a lost object's value: the log has packed ones, lineage makes
// others again.
func (ln *lineage) recoverObject(o *objRec, cause *errs.Error) {
	if o.flags&objPacked != 0 && ln.memory.unpack(o) {
		return
	}
	if ln.remake(o) {
		return
	}
	err := ln.cannotRemake(o)
	if cause != nil {
		err.Cause = []*errs.Error{cause}
		err.Msg += " (" + cause.Error() + ")"
	}
	ln.objects.releaseContained(containedIn(o.res))
	ln.objects.moveObject(o, object.SetError)
	o.res = errorResult(err)
	ln.objects.retainContained(containedIn(o.res))
}

// inventory is what a store that was rebuilt has. What it lacks shows when it is asked for;
// what nobody owns is freed. What the store had been asked is asked again, of clients too.
func (ln *lineage) inventory(m objectstore.Inventory) {
	var free []ids.ObjectID
	for i := range m.Objects {
		s := &m.Objects[i]
		switch o := ln.objects.object(s.ID); {
		case o == nil || o.state == object.Freed || o.state == object.Failed:
			free = append(free, s.ID)
		case o.state == object.Inline && o.flags&objPacking == 0, o.state == object.Pending && ln.memory.unpacking(o):
			free = append(free, s.ID) // packed, and nobody told: the value is here, and its end would not be told there
		case o.state == object.Pending:
			ln.toStore(objectstore.DropAttempt{ID: s.ID, Attempt: s.Attempt})
		}
	}
	if len(free) > 0 {
		ln.toStore(objectstore.Free{IDs: free})
	}
	for _, l := range ln.leases.byID {
		for _, t := range l.fetching {
			ln.memory.pinAgain(t, l)
		}
	}
	for _, cl := range ln.clients.byID {
		if !cl.gone && cl.joined {
			ln.toClient(cl, &wire.Resync{Component: wire.ComponentOwner})
		}
	}
}
