package objectstore

import (
	"cmp"
	"slices"

	"mobula/internal/ids"
	"mobula/wire"
)

// pinForGet answers the client with a pinned extent, after a restore if it must.
func (gt *gets) pinForGet(e PinForGet) {
	if _, ok := gt.clients.byID[e.Client]; !ok {
		return
	}
	e.Job = cmp.Or(e.Job, e.ID.Job())
	r, ok := gt.objects.objs[e.ID]
	if !ok {
		m := gt.creates.missing(e.ID)
		m.Client = e.Client
		gt.emit(ToOwner{e.Job, m})
		return
	}
	if r = gt.copies.reading(e.Client, r); r.o.resident {
		gt.answerGet(e.Client, e.ID, r, e.Refs)
	} else {
		gt.note++
		gt.keepNote(NoteKey{N: gt.note}, e)
		d := gt.restores.requestRestore(r.o, laneGet)
		d.gets = append(d.gets, getter{e.Client, e.Job, e.ID, r.sub, gt.note, e.Refs})
	}
}

func (gt *gets) answerGet(client ids.ClientID, id ids.ObjectID, r ref, refs []ids.ObjectID) {
	gt.objects.pin(client, id, r, 1)
	gt.clients.announce(client, r.o.file, r.o.size, r.o.path)
	res := &wire.Resolved{ID: id, Fetch: true, Extent: r.extent()}
	res.Result = wire.Result{Kind: wire.ResultStored, Size: r.size(), Value: wire.Value{Meta: r.meta(), Refs: refs}}
	gt.clients.toClient(client, res)
}

func (gt *gets) unpinForGet(e UnpinForGet) {
	r, ok := gt.objects.objs[e.ID]
	if ok {
		r, ok = gt.objects.readAt(e.Client, r)
	}
	if !ok || r.o.restore == nil {
		return // answered: the client will unpin
	}
	d := r.o.restore
	for i, g := range d.gets {
		if g.client == e.Client && g.id == e.ID {
			gt.emit(Forget{NoteKey{N: g.note}})
			d.gets = slices.Delete(d.gets, i, i+1)
			break
		}
	}
	gt.restores.cancelRestore(r.o)
}

// missing is the answer about an object that the store does not have. It names the extents that were granted for it: its owner may have
// logged a seal that did not arrive before the node was killed.
func (cr *creates) missing(id ids.ObjectID) Lost {
	m := Lost{ID: id, Err: lostError(id, "is not in the store")}
	for k, g := range cr.grants {
		if k.id == id {
			m.Unsealed = append(m.Unsealed, Unsealed{g.client, k.attempt})
		}
	}
	slices.SortFunc(m.Unsealed, func(a, b Unsealed) int { return cmp.Compare(a.Attempt, b.Attempt) })
	return m
}
