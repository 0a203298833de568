package owner

import (
	"slices"

	"mobula/internal/ids"
	"mobula/objectstore"
	"mobula/raylet/owner/object"
	"mobula/wire"
)

// get subscribes a client to an object; one Resolved answers.
func (gs *gets) get(cl *clientRec, id ids.ObjectID, fetch bool) {
	o := gs.objects.known(id)
	if o == nil {
		gs.toClient(cl, gs.resolvedMsg(wire.Resolved{ID: id, Fetch: fetch, Result: *errorResult(gs.objects.unknown(id))}))
		return
	}
	if o.state == object.Freed && !gs.up.remake(o) {
		gs.toClient(cl, gs.resolvedMsg(wire.Resolved{ID: id, Fetch: fetch, Result: *errorResult(gs.up.cannotRemake(o))}))
		return
	}
	if o.state == object.Pending {
		gs.waitGet(cl, o, fetch)
		return
	}
	gs.answer(cl, o, fetch)
}

// waitGet notes a get of an object that is not resolved.
func (gs *gets) waitGet(cl *clientRec, o *objRec, fetch bool) {
	gs.objects.askFor(o)
	if o.holder == cl && o.flags&objGet == 0 {
		o.flags |= objGet
		if fetch {
			o.flags |= objGetFetch
		}
		return
	}
	w := gs.objects.waitsOf(o)
	w.gets = append(w.gets, getWait{cl, fetch})
}

// answer tells a client of a resolved object. A stored one that is to be fetched goes by way
// of the store, which answers when it has pinned it.
func (gs *gets) answer(cl *clientRec, o *objRec, fetch bool) {
	if cl.gone {
		return
	}
	if fetch && o.state == object.Stored {
		node := gs.nodeOf(cl)
		if o.flags&objBorrowed == 0 {
			gs.copies.locate(o, node)
		} else if !gs.borrows.isOn(o.id, node) {
			gs.borrows.forGet(o.id, node, cl)
			return
		}
		gs.toStoreAt(node, objectstore.PinForGet{Client: cl.id, Job: gs.cfg.Job, ID: o.id, Refs: o.res.Value.Refs})
		return
	}
	if o.state == object.Inline && cl.peer == 0 && !gs.takeWindow(cl, o, fetch) {
		return
	}
	m := gs.newResolved()
	m.ID, m.Fetch, m.Result, m.Elsewhere = o.id, fetch, *o.res, o.state == object.Stored && cl.peer == 0 && gs.elsewhere(o, gs.nodeOf(cl))
	gs.toClient(cl, m)
}

// elsewhere tells whether a stored object is not on a node, as far as is known. Of another job's object it is known that the node has none as long as nobody
// there has asked for it, but where that job's home is.
func (gs *gets) elsewhere(o *objRec, node ids.Home) bool {
	if o.flags&objBorrowed != 0 {
		return o.id.Job().Home() != node && !gs.borrows.isOn(o.id, node)
	}
	return !slices.Contains(gs.copies.of(o), node)
}

// unget withdraws what get asked.
func (gs *gets) unget(cl *clientRec, id ids.ObjectID) {
	cl.window.withdraw(id)
	o := gs.objects.object(id)
	if o == nil {
		return
	}
	o.ungetAll(cl)
	gs.borrows.dropGet(id, cl)
	gs.objects.queueRecount(o)
	if o.state == object.Stored {
		gs.toStoreAt(gs.nodeOf(cl), objectstore.UnpinForGet{Client: cl.id, ID: id})
	}
}

// newResolved gives messages out of a block, to allocate once for many.
func (gs *gets) newResolved() *wire.Resolved {
	if len(gs.resolvedFree) == 0 {
		gs.resolvedFree = make([]wire.Resolved, 16)
	}
	m := &gs.resolvedFree[0]
	gs.resolvedFree = gs.resolvedFree[1:]
	return m
}

func (gs *gets) resolvedMsg(r wire.Resolved) *wire.Resolved {
	m := gs.newResolved()
	*m = r
	return m
}

// fetchAgain asks the store again for what a client still waits for: the store was
// restarted and has forgotten who asked.
func (gs *gets) fetchAgain(cl *clientRec, m *wire.Holdings) {
	if m.Component != wire.ComponentOwner {
		return
	}
	for _, g := range m.Gets {
		if o := gs.objects.object(g.ID); g.Fetch && o != nil && o.state == object.Stored {
			gs.answer(cl, o, true)
		}
	}
}
