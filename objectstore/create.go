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

// create answers at once where it can, and else queues: first come, first served.
func (c *Core) create(client ids.ClientID, m *wire.Create) {
	if _, ok := c.clients[client]; !ok {
		return // it is gone; nobody waits for the answer
	}
	k := grantKey{m.ID, m.Attempt}
	refuse := func(e *errs.Error) { c.toClient(client, &wire.Created{Req: m.Req, ID: m.ID, Err: e}) }
	if r, ok := c.objs[m.ID]; ok {
		// A freed object that a view still pins has the same bytes: it lives again.
		if r.o.values != nil {
			r.o.revive(r.sub)
		}
		r.o.gone = false
		c.settle(r.o)
		c.toClient(client, &wire.Created{Req: m.Req, ID: m.ID, Exists: true})
		return
	}
	if g, ok := c.grants[k]; ok {
		if g.client != client || g.size != m.Size {
			refuse(errs.New(errs.CodeInvalid, "object %v attempt %d is being written by client %v with %d bytes", m.ID, m.Attempt, g.client, g.size))
			return
		}
		c.announce(client, g.file, g.size, g.path) // asked again after a restart
		c.toClient(client, &wire.Created{Req: m.Req, ID: m.ID, Extent: g.extent()})
		return
	}
	if d, ok := c.waiting[k]; ok {
		if d.client != client {
			refuse(errs.New(errs.CodeInvalid, "object %v attempt %d is being created by client %v", m.ID, m.Attempt, d.client))
		}
		d.req = m.Req
		return
	}
	if m.Size > c.alloc.Limit() {
		c.counts.TooLarge++
		refuse(errs.New(errs.CodeObjectTooLarge, "object %v: %s: give the store a larger limit or split the value", m.ID, c.figures(m.Size)))
		return
	}
	d := &demand{lane: laneCreate, need: m.Size, client: client, job: c.jobOf[client], req: m.Req, id: m.ID, attempt: m.Attempt, task: m.Task}
	c.waiting[k] = d
	c.enqueue(d)
	if !m.Task.IsZero() {
		c.creating[m.Task]++
	}
}

// enqueue puts a demand at the end of its lane.
func (c *Core) enqueue(d *demand) {
	c.ticket++
	d.ticket, d.stage = c.ticket, stageWaiting
	c.lastNeed = c.now
	c.queues[d.lane].Push(d)
}

// leaveQueue ends a create's wait, however it ends.
func (c *Core) leaveQueue(d *demand) {
	d.stage = stageDone
	delete(c.waiting, grantKey{d.id, d.attempt})
	if !d.task.IsZero() {
		if c.creating[d.task]--; c.creating[d.task] <= 0 {
			delete(c.creating, d.task)
		}
	}
}

// grantDemand gives a create its extent.
func (c *Core) grantDemand(d *demand) {
	c.leaveQueue(d)
	g := &grant{grantKey: grantKey{d.id, d.attempt}, client: d.client, task: d.task, size: d.need, job: d.job, block: d.block, file: d.file, path: d.path, slot: c.newSlot(), cold: d.cold && d.file == 0}
	c.grants[g.grantKey] = g
	c.grantBytes += g.footprint()
	c.counts.Creates++
	c.emit(WriteRecord{g.slot, g.record()})
	c.announce(g.client, g.file, g.size, g.path)
	c.toClient(g.client, &wire.Created{Req: d.req, ID: g.id, Extent: g.extent()})
}

// unbring gives back what a writer may have brought of a part of a cold extent. A
// reservation under way that meets it would count what was punched: it counts what is there when it ends.
func (c *Core) unbring(b alloc.Block) {
	c.alloc.Unback(b)
	if rs := c.settled(alloc.Owned{Owner: b.Owner, Range: b.Range()}); len(rs) > 0 {
		c.emit(Punch{rs})
	}
}

func (g *grant) footprint() uint64 {
	if g.file != 0 {
		return g.size
	}
	return g.block.Size
}

func (g *grant) record() record.Record {
	return record.Record{State: record.StateGranted, ID: g.id, Attempt: g.attempt, Client: g.client, Job: g.job, Resident: true, File: g.file,
		Block: g.block, Size: g.size, Path: g.path, Payload: []byte{}}
}

// refuseDemand ends a create with an error.
func (c *Core) refuseDemand(d *demand, e *errs.Error) {
	c.leaveQueue(d)
	c.toClient(d.client, &wire.Created{Req: d.req, ID: d.id, Err: e})
}

// abort gives an unsealed extent back or withdraws a create that waits.
func (c *Core) abort(client ids.ClientID, k grantKey) {
	if g, ok := c.grants[k]; ok && g.client == client {
		c.dropGrant(g)
		return
	}
	if d, ok := c.waiting[k]; ok && d.client == client {
		c.withdraw(d)
	}
}

// withdraw ends a create that its client no longer wants. A Created answers it all the same.
func (c *Core) withdraw(d *demand) {
	pending := d.stage != stageWaiting // memory or a file is on its way to it
	c.refuseDemand(d, errs.New(errs.CodeCancelled, "create of object %v was withdrawn", d.id))
	d.cancelled = pending
}

func (c *Core) dropGrant(g *grant) {
	delete(c.grants, g.grantKey)
	c.grantBytes -= g.footprint()
	c.clearSlot(g.slot)
	if g.cold {
		c.unbring(g.block)
	}
	c.giveBack(g.block, g.file, g.size, g.path)
}

// giveBack frees what a grant or an object held.
func (c *Core) giveBack(b alloc.Block, file uint32, size uint64, path string) {
	if file != 0 {
		c.fallbackBytes -= size
		c.hopeAgain()
		c.dropFile(file, path)
		return
	}
	c.freeBlock(b)
}

// seal makes a grant an object that everyone may read and nobody may change.
func (c *Core) seal(e SealObject) {
	k := grantKey{e.ID, e.Attempt}
	g, ok := c.grants[k]
	if r, sealed := c.objs[e.ID]; sealed {
		if ok && g.client == e.Client { // another attempt was first
			c.dropGrant(g)
		}
		if r.o.values == nil && r.o.attempt == e.Attempt {
			return // said twice
		}
		return
	}
	lost := func(err *errs.Error) {
		c.emit(ToOwner{e.ID.Job(), Lost{ID: e.ID, Attempt: e.Attempt, Client: e.Client, Err: err}})
	}
	switch {
	case !ok || g.client != e.Client:
		lost(lostError(e.ID, "was never granted to the client that sealed it"))
		return
	case g.doomed:
		c.dropGrant(g)
		lost(errs.New(errs.CodeObjectFreed, "object %v: its job is gone", e.ID))
		return
	case e.Size > g.size:
		c.dropGrant(g)
		lost(errs.New(errs.CodeProtocol, "object %v sealed with %d bytes, %d were granted", e.ID, e.Size, g.size))
		return
	}
	delete(c.grants, k)
	c.grantBytes -= g.footprint()
	o := &object{id: e.ID, attempt: e.Attempt, slot: g.slot, size: e.Size, meta: e.Meta, job: g.job, resident: true, block: g.block, file: g.file, path: g.path}
	if g.file == 0 {
		if tail := max(alloc.Page, (e.Size+alloc.Page-1)&^(alloc.Page-1)); g.cold && tail < g.block.Size {
			c.unbring(alloc.Block{Off: g.block.Off + tail, Size: g.block.Size - tail, Owner: g.block.Owner})
		}
		b, err := c.alloc.Shrink(g.block, e.Size)
		if err != nil {
			panic(err)
		}
		o.block = b
		if g.cold {
			c.alloc.Back(alloc.Owned{Owner: b.Owner, Range: b.Range()})
		}
	} else {
		c.fallbackBytes -= g.size - e.Size
	}
	c.objs[e.ID] = ref{o: o}
	c.counts.Sealed++
	c.recordWith(o, append([]byte{}, e.Meta...))
	c.settle(o)
}

// missing is the answer about an object that the store does not have. It names the extents that were granted for it: its owner may have
// logged a seal that did not arrive before the node was killed.
func (c *Core) missing(id ids.ObjectID) Lost {
	m := Lost{ID: id, Err: lostError(id, "is not in the store")}
	for k, g := range c.grants {
		if k.id == id {
			m.Unsealed = append(m.Unsealed, Unsealed{g.client, k.attempt})
		}
	}
	slices.SortFunc(m.Unsealed, func(a, b Unsealed) int { return cmp.Compare(a.Attempt, b.Attempt) })
	return m
}

// record writes the object's state to the index. Its payload is there since it was sealed.
func (c *Core) record(o *object) { c.recordWith(o, nil) }

func (c *Core) recordWith(o *object, payload []byte) {
	r := record.Record{State: record.StateSealed, ID: o.id, Attempt: o.attempt, Size: o.size, Job: o.job, Spilled: o.spilled, Loc: o.loc,
		Packed: o.values != nil, Copy: o.of != nil, Payload: payload}
	if r.Copy {
		r.Payload = []byte{} // what it is of has it
	}
	if o.resident {
		r.Resident, r.File, r.Block, r.Path = true, o.file, o.block, o.path
	}
	if d := o.restore; d != nil && d.stage == stageReading {
		r.State, r.File, r.Block, r.Path = record.StateRestoring, d.file, d.block, d.path
	}
	if d := o.filling; d != nil { // a new core keeps the block until the read has ended, and nothing else
		r.State, r.File, r.Block, r.Path, r.Spilled = record.StateRestoring, d.file, d.block, d.path, false
	}
	c.emit(WriteRecord{o.slot, r})
}

// dropAttempt frees what a losing attempt made.
func (c *Core) dropAttempt(k grantKey) {
	if g, ok := c.grants[k]; ok {
		c.dropGrant(g)
		return
	}
	if d, ok := c.waiting[k]; ok {
		c.withdraw(d)
		return
	}
	r, ok := c.objs[k.id]
	if !ok || r.o.values != nil || r.o.attempt != k.attempt {
		return
	}
	o := r.o
	delete(c.objs, k.id)
	o.gone = true
	if o.restore != nil {
		c.failRestore(o.restore, lostError(k.id, "belongs to an attempt that was dropped"))
	}
	c.failCopies(o, lostError(k.id, "belongs to an attempt that was dropped"))
	if o.pinned() || len(o.copies) > 0 || o.spilling || o.restore != nil || o.filling != nil {
		c.orphan(k.id, r)
	}
	c.settle(o)
}
