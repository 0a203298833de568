package objectstore

import (
	"cmp"
	"slices"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/objectstore/alloc"
	"mobula/objectstore/record"
	"mobula/wire"
)

// create answers at once where it can, and else queues: first come, first served. An object that is there already is no answer: its owner may be letting go
// of it, and decides at the seal whose bytes count.
func (cr *creates) create(client ids.ClientID, m *wire.Create) {
	if _, ok := cr.clients.byID[client]; !ok {
		return // it is gone; nobody waits for the answer
	}
	k := grantKey{m.ID, m.Attempt}
	refuse := func(e *errs.Error) { cr.clients.toClient(client, &wire.Created{Req: m.Req, ID: m.ID, Err: e}) }
	if g, ok := cr.grants[k]; ok && g.left {
		cr.dropGrant(g) // the owner has forgotten that attempt
	} else if ok {
		if g.client != client || g.size != m.Size {
			refuse(errs.New(errs.CodeInvalid, "object %v attempt %d is being written by client %v with %d bytes", m.ID, m.Attempt, g.client, g.size))
			return
		}
		cr.clients.announce(client, g.file, g.size, g.path) // asked again after a restart
		cr.answer(client, m.Task, &wire.Created{Req: m.Req, ID: m.ID, Extent: g.extent()})
		return
	}
	if d, ok := cr.waiting[k]; ok {
		if d.client != client {
			refuse(errs.New(errs.CodeInvalid, "object %v attempt %d is being created by client %v", m.ID, m.Attempt, d.client))
		}
		d.req = m.Req
		return
	}
	if m.Size > cr.space.alloc.Limit() {
		cr.counts.TooLarge++
		refuse(errs.New(errs.CodeObjectTooLarge, "object %v: %s: give the store a larger limit or split the value", m.ID, cr.space.figures(m.Size)))
		return
	}
	d := &demand{lane: laneCreate, need: m.Size, client: client, job: cr.clients.jobOf[client], req: m.Req, id: m.ID, attempt: m.Attempt, task: m.Task}
	cr.waiting[k] = d
	cr.demands.enqueue(d)
	if !m.Task.IsZero() {
		cr.creating[m.Task]++
	}
}

// leaveQueue ends a create's wait, however it ends.
func (cr *creates) leaveQueue(d *demand) {
	d.stage = stageDone
	delete(cr.waiting, grantKey{d.id, d.attempt})
	if !d.task.IsZero() {
		if cr.creating[d.task]--; cr.creating[d.task] <= 0 {
			delete(cr.creating, d.task)
		}
	}
}

// grantDemand gives a create its extent.
func (cr *creates) grantDemand(d *demand) {
	cr.leaveQueue(d)
	g := &grant{grantKey: grantKey{d.id, d.attempt}, client: d.client, task: d.task, size: d.need, job: d.job, block: d.block, file: d.file, path: d.path, slot: cr.objects.newSlot(), cold: d.cold && d.file == 0}
	cr.grants[g.grantKey] = g
	cr.count(g)
	cr.counts.Creates++
	cr.emit(WriteRecord{g.slot, g.record()})
	cr.clients.announce(g.client, g.file, g.size, g.path)
	cr.answer(g.client, g.task, &wire.Created{Req: d.req, ID: g.id, Extent: g.extent()})
}

func (g *grant) footprint() uint64 {
	if g.file != 0 {
		return g.size
	}
	return g.block.Size
}

func (cr *creates) count(g *grant) {
	cr.space.grantBytes += g.footprint()
	if g.task.IsZero() {
		cr.space.putBytes += g.size
	}
}

func (cr *creates) uncount(g *grant) {
	cr.space.grantBytes -= g.footprint()
	if g.task.IsZero() {
		cr.space.putBytes -= g.size
	}
}

func (g *grant) record() record.Record {
	return record.Record{State: record.StateGranted, ID: g.id, Attempt: g.attempt, Client: g.client, Job: g.job, Resident: true, File: g.file,
		Block: g.block, Size: g.size, Path: g.path, Payload: []byte{}}
}

// refuseDemand ends a create with an error.
func (cr *creates) refuseDemand(d *demand, e *errs.Error) {
	cr.leaveQueue(d)
	cr.answer(d.client, d.task, &wire.Created{Req: d.req, ID: d.id, Err: e})
}

// abort gives an unsealed extent back or withdraws a create that waits.
func (cr *creates) abort(client ids.ClientID, k grantKey) {
	if g, ok := cr.grants[k]; ok && g.client == client {
		cr.dropGrant(g)
		return
	}
	if d, ok := cr.waiting[k]; ok && d.client == client {
		cr.withdraw(d)
	}
}

// leave asks the owners of what a client was writing that is gone whether it is sealed: their word on that may be on its way.
func (cr *creates) leave(client ids.ClientID) {
	for _, k := range cr.grantKeys(func(g *grant) bool { return g.client == client }) {
		if g := cr.grants[k]; g.doomed {
			cr.dropGrant(g)
		} else {
			g.left = true
		}
	}
	jobs := cr.left(func(g *grant) bool { return g.client == client })
	for _, job := range sortedKeys(jobs) {
		cr.emit(ToOwner{job, Inventory{Job: job, Asked: true, Left: jobs[job]}})
	}
}

// left are the extents of clients that are gone, by the job of their object.
func (cr *creates) left(of func(*grant) bool) map[ids.JobID][]Left {
	out := make(map[ids.JobID][]Left)
	for _, k := range cr.grantKeys(func(g *grant) bool { return g.left && of(g) }) {
		job := k.id.Job()
		out[job] = append(out[job], Left{k.id, k.attempt, cr.grants[k].client})
	}
	return out
}

// grantKeys and waitingKeys are the grants, and the creates that wait, that are of a kind, in a fixed order.
func (cr *creates) grantKeys(of func(*grant) bool) []grantKey { return keysOf(cr.grants, of) }

func (cr *creates) waitingKeys(of func(*demand) bool) []grantKey { return keysOf(cr.waiting, of) }

func keysOf[T any](m map[grantKey]T, of func(T) bool) []grantKey {
	var out []grantKey
	for k, x := range m {
		if of(x) {
			out = append(out, k)
		}
	}
	slices.SortFunc(out, func(a, b grantKey) int { return cmp.Or(a.id.Compare(b.id), cmp.Compare(a.attempt, b.attempt)) })
	return out
}

// withdraw ends a create that its client no longer wants. A Created answers it all the same.
func (cr *creates) withdraw(d *demand) {
	pending := d.stage != stageWaiting // memory or a file is on its way to it
	cr.refuseDemand(d, errs.New(errs.CodeCancelled, "create of object %v was withdrawn", d.id))
	d.cancelled = pending
}

func (cr *creates) dropGrant(g *grant) {
	delete(cr.grants, g.grantKey)
	cr.uncount(g)
	cr.objects.clearSlot(g.slot)
	if g.cold {
		cr.space.punchUnwritten(g.block)
	}
	cr.objects.giveBack(g.block, g.file, g.size, g.path)
}

// seal makes a grant an object that everyone may read and nobody may change.
func (cr *creates) seal(e SealObject) {
	k := grantKey{e.ID, e.Attempt}
	g, ok := cr.grants[k]
	ours := ok && g.client == e.Client
	was, there := cr.objects.objs[e.ID]
	if there && was.o.values == nil && was.o.attempt == e.Attempt && (!ours || !was.o.gone) { // said twice
		if ours {
			cr.dropGrant(g)
		}
		cr.objects.keep(was.o)
		cr.objects.relist(was.o)
		return
	}
	lost := func(err *errs.Error) {
		cr.emit(ToOwner{e.ID.Job(), Lost{ID: e.ID, Attempt: e.Attempt, Client: e.Client, Err: err}})
	}
	switch {
	case there && !ours:
		return
	case !ours:
		lost(lostError(e.ID, "was never granted to the client that sealed it"))
		return
	case g.doomed:
		cr.dropGrant(g)
		lost(errs.New(errs.CodeObjectFreed, "object %v: its job is gone", e.ID))
		return
	case e.Size > g.size:
		cr.dropGrant(g)
		lost(errs.New(errs.CodeProtocol, "object %v sealed with %d bytes, %d were granted", e.ID, e.Size, g.size))
		return
	}
	if there { // its owner has let go of that, or knows nothing of it
		cr.restores.supersede(e.ID, was, lostError(e.ID, "was made again"))
	}
	delete(cr.grants, k)
	cr.uncount(g)
	o := &object{id: e.ID, attempt: e.Attempt, slot: g.slot, size: e.Size, meta: e.Meta, job: g.job, resident: true, block: g.block, file: g.file, path: g.path}
	if g.file == 0 {
		if written := (e.Size + alloc.Page - 1) &^ (alloc.Page - 1); g.cold && written < g.block.Size {
			cr.space.punchUnwritten(alloc.Block{Off: g.block.Off + written, Size: g.block.Size - written, Owner: g.block.Owner})
		}
		b, err := cr.space.alloc.Shrink(g.block, e.Size)
		if err != nil {
			panic(err)
		}
		o.block = b
		if g.cold && e.Size > 0 {
			cr.space.alloc.Back(alloc.Owned{Owner: b.Owner, Range: b.Range()})
		}
	} else {
		cr.space.fallbackBytes -= g.size - e.Size
	}
	cr.objects.objs[e.ID] = ref{o: o}
	cr.counts.Sealed++
	cr.objects.recordWith(o, append([]byte{}, e.Meta...))
	cr.objects.relist(o)
}

// dropAttempt frees what a losing attempt made, or what one client of it was granted.
func (cr *creates) dropAttempt(k grantKey, client ids.ClientID) {
	g, granted := cr.grants[k]
	if client != 0 && (!granted || g.client != client) {
		return
	}
	if granted {
		cr.dropGrant(g)
		return
	}
	if d, ok := cr.waiting[k]; ok {
		cr.withdraw(d)
		return
	}
	r, ok := cr.objects.objs[k.id]
	if !ok || r.o.values != nil || r.o.attempt != k.attempt {
		return
	}
	cr.restores.supersede(k.id, r, lostError(k.id, "belongs to an attempt that was dropped"))
}
