package owner

import (
	"maps"
	"slices"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/objectstore"
	"mobula/raylet/owner/object"
	"mobula/raylet/owner/task"
	"mobula/wire"
)

// lost says that the store of a node has no copy of an object, and gets none. Where no other node has it either, it is made again, or an error stands
// for it from now on; whoever had asked for it waits or gets the error. When the job has ended nobody waits, and a core that was rebuilt since may have an
// object that the one before had freed: that is not logged any more.
func (ln *lineage) lost(node ids.Home, m objectstore.Lost) {
	if ln.ended {
		return
	}
	o := ln.objects.object(m.ID)
	if o != nil && o.state == object.Stored {
		switch {
		case o.flags&objBorrowed != 0:
			ln.up.borrowedLost(o, node, m)
		case m.Copy != 0 && m.Copy != o.attempt: // it was made again meanwhile
		case !ln.sealAgain(o, node, m.Unsealed) && ln.copies.lost(o, node):
			ln.objectLost(o, m.Err)
		}
	}
	if wait := ln.copies.patience(m.ID); wait > 0 {
		ln.timers.add(ln.now+int64(wait), timer{kind: timerAsk, lost: &m})
		return
	}
	ln.askAgain(&m)
}

// askAgain has whoever was told that an object is lost look for it anew.
func (ln *lineage) askAgain(m *objectstore.Lost) {
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
func (ln *lineage) sealAgain(o *objRec, node ids.Home, unsealed []objectstore.Unsealed) bool {
	for _, u := range unsealed {
		if u.Attempt == o.attempt {
			ln.toStoreAt(node, objectstore.SealObject{Client: u.Client, ID: o.id, Attempt: o.attempt, Size: o.res.Size, Meta: o.res.Value.Meta})
			return true
		}
	}
	return false
}

// sealLeft seals what a client was writing if it had said that it is sealed.
func (ln *lineage) sealLeft(l objectstore.Left, node ids.Home) bool {
	o := ln.objects.object(l.ID)
	return o != nil && o.state == object.Stored && slices.Contains(ln.copies.of(o), node) && ln.sealAgain(o, node, []objectstore.Unsealed{{Client: l.Client, Attempt: l.Attempt}})
}

// objectLost counts an object whose last copy is gone, and recovers it. What nobody needs is made again when somebody does: a client, or the owner of another job,
// may yet say that it holds it. Where its task is to run anyway its result is awaited.
func (ln *lineage) objectLost(o *objRec, cause *errs.Error) {
	ln.stats.Lost++
	if !o.held() && o.madeAgain() && o.flags&objPacked == 0 && (o.rec == nil || o.rec.state.Terminal()) {
		ln.copies.freeElsewhere(o)
		ln.objects.dropValue(o)
		ln.objects.queueRecount(o)
		return
	}
	ln.recoverObject(o, cause)
}

// recoverObject finds a way to a lost object's value: the log has packed ones, lineage makes
// others again.
func (ln *lineage) recoverObject(o *objRec, cause *errs.Error) {
	ln.copies.freeElsewhere(o)
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

// inventory is what a store has that was rebuilt, or was asked. What it lacks shows when it is asked for, but where it was asked by this core (settle);
// what nobody owns is freed. What a store that was rebuilt had been asked is asked again, of clients too.
func (ln *lineage) inventory(node ids.Home, m objectstore.Inventory) {
	var free []ids.ObjectID
	for i := range m.Objects {
		s := &m.Objects[i]
		switch o := ln.objects.object(s.ID); {
		case o != nil && o.flags&objBorrowed != 0:
		case o == nil || o.state == object.Freed || o.state == object.Failed:
			free = append(free, s.ID)
		case o.state == object.Inline && o.flags&objPacking == 0, o.state == object.Pending && ln.memory.unpacking(o):
			free = append(free, s.ID) // packed, and nobody told: the value is here, and its end would not be told there
		case o.state == object.Pending:
			ln.toStoreAt(node, objectstore.DropAttempt{ID: s.ID, Attempt: s.Attempt})
		case o.state == object.Stored:
			ln.copies.found(o, node, s)
		}
	}
	if len(free) > 0 {
		ln.toStoreAt(node, objectstore.Free{IDs: free})
	}
	for _, l := range m.Left {
		if !ln.sealLeft(l, node) {
			ln.toStoreAt(node, objectstore.DropAttempt(l))
		}
	}
	for _, l := range m.Unsealed {
		ln.sealLeft(l, node)
	}
	if node == ln.home() {
		ln.copies.settle(&m)
	}
	if m.Asked {
		return
	}
	for _, id := range slices.Sorted(maps.Keys(ln.leases.byID)) {
		l := ln.leases.byID[id]
		if ln.nodeOf(l.worker) != node {
			continue
		}
		for _, t := range l.fetching {
			ln.memory.pinAgain(t, l)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(ln.clients.byID)) {
		if cl := ln.clients.byID[id]; !cl.gone && cl.joined && ln.nodeOf(cl) == node {
			ln.toClient(cl, &wire.Resync{Component: wire.ComponentOwner})
		}
	}
}
