package objectstore

import (
	"cmp"
	"slices"

	"mobula/internal/ids"
	"mobula/objectstore/record"
	"mobula/wire"
)

// settle brings an object's place in the lists and the books up to date after any change of its pins
// or copies, and lets it go when nothing keeps it.
func (c *Core) settle(o *object) {
	if len(o.copies) > 0 && (o.gone || len(o.parked) > 0) {
		c.letCopiesGo(o)
	}
	if o.dead {
		return
	}
	pinned := o.pinned()
	if counted := pinned && o.resident && o.file == 0; counted != o.counted {
		o.counted = counted
		if counted {
			c.pinnedBytes += o.block.Size
		} else {
			c.pinnedBytes -= o.block.Size
		}
	}
	var want *lru
	if o.resident && o.file == 0 && !pinned && !o.spilling && (!o.gone || len(o.copies) > 0) {
		want = &c.cold
		if o.spilled || o.of != nil {
			want = &c.second
		}
	}
	if o.list != want {
		if o.list != nil {
			o.list.remove(o)
		}
		if want != nil {
			want.push(o)
		}
	}
	if len(o.parked) > 0 && !o.busy() {
		parked := o.parked
		o.parked = nil
		for _, id := range parked {
			if r, ok := c.objs[id]; ok && r.o == o {
				c.settleValue(id, r)
			}
		}
	}
	if pinned || o.spilling || o.restore != nil || o.draining || o.filling != nil {
		return
	}
	switch {
	case o.gone && len(o.copies) == 0, o.of != nil && !o.resident:
		c.destroy(o)
	case o.resident && o.file != 0 && (o.spilled || o.of != nil):
		c.evict(o) // what is on disk, or what it is a copy of, is enough
	}
}

// evict drops the bytes in memory of an object that has a spilled copy, or is a copy.
func (c *Core) evict(o *object) {
	if o.of != nil {
		c.destroy(o)
		return
	}
	if o.list != nil {
		o.list.remove(o)
	}
	o.resident = false
	c.record(o)
	c.giveBack(o.block, o.file, o.size, o.path)
	o.file, o.path = 0, ""
}

// destroy forgets an object and all its copies.
func (c *Core) destroy(o *object) {
	if o.list != nil {
		o.list.remove(o)
	}
	for id := range c.idsOf(o) {
		delete(c.objs, id)
	}
	for _, id := range o.orphaned {
		if l := slices.DeleteFunc(c.orphans[id], func(x ref) bool { return x.o == o }); len(l) == 0 {
			delete(c.orphans, id)
		} else {
			c.orphans[id] = l
		}
	}
	delete(c.pinned, o)
	c.letGo()
	c.clearSlot(o.slot)
	if o.spilled {
		c.emit(SpillRemove{locs(o.loc)})
		c.disk.retryAt = 0 // a disk that was full has room again
	}
	if o.resident {
		c.giveBack(o.block, o.file, o.size, o.path)
	}
	o.resident, o.spilled, o.dead = false, false, true
	c.copyGone(o)
}

// pin takes n pins for a client on an object or value that is in memory.
func (c *Core) pin(client ids.ClientID, id ids.ObjectID, r ref, n uint32) {
	for _, x := range c.orphansOf(client, id) {
		for i := range x.o.pins {
			if p := &x.o.pins[i]; p.client == client && p.sub == x.sub && !p.merged {
				n += p.n // an Unpin cannot tell them apart: both stay until all are dropped
				p.merged = true
			}
		}
	}
	r.o.addPin(client, id, r.sub, n)
	c.pinned[r.o] = struct{}{}
	c.settle(r.o)
}

func (c *Core) unpin(client ids.ClientID, id ids.ObjectID, n uint32) {
	r, ok := c.objs[id]
	if ok {
		r, ok = c.readAt(client, r)
	}
	if ok {
		n -= r.o.dropPins(client, r.sub, n)
		if r.o.pinsOf(client, r.sub) == 0 {
			c.dropMerged(client, id)
		}
		c.unpinned(id, r)
	}
	for _, x := range c.orphansOf(client, id) {
		n -= x.o.dropPins(client, x.sub, n)
		c.unpinned(id, x)
	}
}

// dropMerged drops the pins on orphans that were counted with those of their successor.
func (c *Core) dropMerged(client ids.ClientID, id ids.ObjectID) {
	for _, x := range c.orphansOf(client, id) {
		x.o.pins = slices.DeleteFunc(x.o.pins, func(p pin) bool { return p.client == client && p.sub == x.sub && p.merged })
		c.unpinned(id, x)
	}
}

// unpinned follows up on pins that fell.
func (c *Core) unpinned(id ids.ObjectID, r ref) {
	if len(r.o.pins) == 0 {
		delete(c.pinned, r.o)
	}
	if r.o.values != nil {
		c.settleValue(id, r)
	}
	c.settle(r.o)
}

// settleValue lets a freed value go once no view pins it; with its last one goes the block.
func (c *Core) settleValue(id ids.ObjectID, r ref) {
	if !r.o.values[r.sub].gone || c.objs[id] != r {
		return
	}
	for _, p := range r.o.pins {
		if p.sub == r.sub {
			return
		}
	}
	if r.o.busy() {
		r.o.parked = append(r.o.parked, id)
		return
	}
	delete(c.objs, id)
	if r.o.live--; r.o.live == 0 {
		r.o.gone = true
	}
}

// free drops an object to which no reference is left. Pins keep the bytes until they fall.
func (c *Core) free(id ids.ObjectID) {
	if p, ok := c.packing[id]; ok {
		delete(c.packing, id)
		if p.dropped[id] = true; len(p.dropped) == len(p.values) && p.d.stage == stageWaiting {
			c.dropPack(p.d)
		}
	}
	r, ok := c.objs[id]
	if !ok {
		return
	}
	if r.o.values != nil {
		r.o.values[r.sub].gone = true
		c.settleValue(id, r)
	} else {
		r.o.gone = true
	}
	c.unwanted(r.o)
	c.settle(r.o)
}

// busy tells whether a block is needed as a whole, whatever becomes of its values.
func (o *object) busy() bool {
	return o.argPins > 0 || len(o.copies) > 0 || o.copying > 0 || o.quarantine || o.restore != nil || o.spilling || o.draining
}

func (o *object) revive(sub uint32) { o.values[sub].gone = false }

// clientJoined makes a client known; one from before a restart that has not said what it holds is asked.
func (c *Core) clientJoined(e ClientJoined) {
	o := c.old[e.Client]
	if _, ok := c.clients[e.Client]; !ok {
		slot := uint32(0)
		if o != nil {
			slot = o.slot
		} else {
			slot = c.newSlot()
		}
		c.clients[e.Client] = slot
		c.jobOf[e.Client] = e.Job
		c.emit(WriteRecord{slot, record.Record{State: record.StateClient, Client: e.Client, PID: e.PID, Job: e.Job, Payload: []byte{}}})
	}
	if o != nil { // even if it was asked: it may have been away
		c.toClient(e.Client, &wire.Resync{Component: wire.ComponentStore, Epoch: c.epoch})
	}
}

// clientGone drops all that a dead client held or waited for.
func (c *Core) clientGone(client ids.ClientID) {
	if slot, ok := c.clients[client]; ok {
		delete(c.clients, client)
		c.clearSlot(slot)
	} else if o := c.old[client]; o != nil {
		c.clearSlot(o.slot)
	}
	for o := range c.pinned {
		for i := 0; i < len(o.pins); {
			p := o.pins[i]
			if p.client != client {
				i++
				continue
			}
			o.pins = slices.Delete(o.pins, i, i+1)
			if o.values != nil {
				c.settleValue(p.id, ref{o, p.sub})
			}
		}
		if len(o.pins) == 0 {
			delete(c.pinned, o)
		}
		c.settle(o)
	}
	for _, g := range c.grants {
		if g.client == client {
			c.dropGrant(g)
		}
	}
	for _, d := range c.waiting {
		if d.client == client {
			c.withdraw(d)
		}
	}
	c.eachRestore(func(d *demand) {
		d.gets = slices.DeleteFunc(d.gets, func(g getter) bool {
			if g.client == client {
				c.emit(Forget{NoteKey{N: g.note}})
			}
			return g.client == client
		})
		c.unwanted(d.o)
	})
	for _, l := range c.sets {
		for _, s := range slices.Clone(l) {
			if s.req.Worker == client {
				c.dropSet(s)
			}
		}
	}
	c.declared(client)
	delete(c.jobOf, client)
	c.landAdrift()
}

// pinForGet answers the client with a pinned extent, after a restore if it must.
func (c *Core) pinForGet(e PinForGet) {
	if _, ok := c.clients[e.Client]; !ok {
		return
	}
	e.Job = cmp.Or(e.Job, e.ID.Job())
	r, ok := c.objs[e.ID]
	if !ok {
		m := c.missing(e.ID)
		m.Client = e.Client
		c.emit(ToOwner{e.Job, m})
		return
	}
	if r = c.reading(e.Client, r); r.o.resident {
		c.answerGet(e.Client, e.ID, r, e.Refs)
	} else {
		c.note++
		c.emit(Remember{NoteKey{N: c.note}, e})
		d := c.want(r.o, laneGet)
		d.gets = append(d.gets, getter{e.Client, e.Job, e.ID, r.sub, c.note, e.Refs})
	}
}

func (c *Core) answerGet(client ids.ClientID, id ids.ObjectID, r ref, refs []ids.ObjectID) {
	c.pin(client, id, r, 1)
	c.announce(client, r.o.file, r.o.size, r.o.path)
	res := &wire.Resolved{ID: id, Fetch: true, Extent: r.extent()}
	res.Result = wire.Result{Kind: wire.ResultStored, Size: r.size(), Value: wire.Value{Meta: r.meta(), Refs: refs}}
	c.toClient(client, res)
}

func (c *Core) unpinForGet(e UnpinForGet) {
	r, ok := c.objs[e.ID]
	if ok {
		r, ok = c.readAt(e.Client, r)
	}
	if !ok || r.o.restore == nil {
		return // answered: the client will unpin
	}
	d := r.o.restore
	for i, g := range d.gets {
		if g.client == e.Client && g.id == e.ID {
			c.emit(Forget{NoteKey{N: g.note}})
			d.gets = slices.Delete(d.gets, i, i+1)
			break
		}
	}
	c.unwanted(r.o)
}

// dropJob frees everything of a job. Extents that are still being written stay until their
// writer is done or gone.
func (c *Core) dropJob(job ids.JobID) {
	if _, known := c.over[job]; !known {
		c.note++
		c.over[job] = NoteKey{N: c.note}
		c.emit(Remember{c.over[job], DropJob{job}}) // a new core lets the file go too
	}
	c.dropCopiesOf(job)
	for id := range c.objs {
		if id.Job() == job {
			c.free(id)
		}
	}
	for id := range c.packing {
		if id.Job() == job {
			c.free(id)
		}
	}
	for k, g := range c.grants {
		if k.id.Job() == job {
			g.doomed = true
		}
	}
	for k, d := range c.waiting {
		if k.id.Job() == job {
			c.withdraw(d)
		}
	}
	for _, l := range c.sets {
		for _, s := range slices.Clone(l) {
			if s.req.Job == job {
				c.dropSet(s)
			}
		}
	}
	for t := range c.idle {
		if t.Job() == job {
			delete(c.idle, t)
		}
	}
}
