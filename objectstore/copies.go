package objectstore

import (
	"cmp"
	"slices"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/objectstore/record"
	"mobula/wire"
)

// What another job's processes made a client reads in a copy, which lies in its own job's file: decision 0016. A copy is an object that is
// restored from the one that it is of, from memory or from spill storage. One that nobody has pinned stays until its room is needed, or until
// something of what it is of was freed. The object stays known, in memory or not, while it has copies.

// foreign tells whether a client reads an object in a copy only.
func (c *Core) foreign(client ids.ClientID, o *object) bool { return c.jobOf[client] != o.job }

// reading is what a client reads r in. A copy that there was not yet has to be wanted now.
func (c *Core) reading(client ids.ClientID, r ref) ref {
	if !c.foreign(client, r.o) {
		return r
	}
	if x, ok := c.readAt(client, r); ok {
		return x
	}
	o, job := r.o, c.jobOf[client]
	_, over := c.over[job]
	x := &object{id: o.id, attempt: o.attempt, slot: c.newSlot(), size: o.size, meta: o.meta, values: o.values, job: job, of: o,
		gone: o.gone || len(o.parked) > 0 || over}
	if o.copies == nil {
		o.copies = make(map[ids.JobID]*object)
	}
	o.copies[x.job] = x
	c.copies[x] = struct{}{}
	return ref{x, r.sub}
}

// readAt is what a client may have pinned of r: r itself, or its job's copy if there is one.
func (c *Core) readAt(client ids.ClientID, r ref) (ref, bool) {
	if !c.foreign(client, r.o) {
		return r, true
	}
	x := r.o.copies[c.jobOf[client]]
	return ref{x, r.sub}, x != nil
}

// orphan keeps what an id was before where a client's Unpin finds it.
func (c *Core) orphan(id ids.ObjectID, r ref) {
	c.orphans[id] = append(c.orphans[id], r)
	r.o.orphaned = append(r.o.orphaned, id)
}

// orphansOf lists what a client may have pinned of what an id was before.
func (c *Core) orphansOf(client ids.ClientID, id ids.ObjectID) (out []ref) {
	for _, r := range c.orphans[id] {
		if r, ok := c.readAt(client, r); ok {
			out = append(out, r)
		}
	}
	return out
}

// readInto reads a restore's object into the room that it has.
func (c *Core) readInto(d *demand, job uint64) {
	e := SpillRead{Job: job, Loc: d.o.loc, Place: d.o.job, Extent: wire.Extent{File: d.file, Off: d.block.Off, Size: d.o.size}}
	if d.file != 0 {
		e.Extent.Off = 0
	}
	of := d.o.of
	switch {
	case of == nil:
		c.emit(e)
	case of.resident:
		of.copying++
		d.from = of
		c.settle(of)
		c.emit(CopyObject{Job: job, From: of.job, Of: ref{o: of}.whole(), Place: e.Place, Extent: e.Extent})
	default:
		e.Loc = of.loc
		c.emit(e)
	}
}

// copied ends the pin that a copy being made has on what it is of, and tells whether it was made from there.
func (c *Core) copied(d *demand) bool {
	of := d.from
	if of == nil {
		return false
	}
	d.from = nil
	of.copying--
	c.settle(of)
	return true
}

// copyFailed ends a copy that cannot be made, unless it can be made from memory by now.
func (c *Core) copyFailed(d *demand, fromMemory bool, cause error) {
	o, of := d.o, d.o.of
	if !fromMemory && of.resident {
		c.restores++
		c.readInto(d, c.newJob(d))
		return
	}
	c.giveBack(d.block, d.file, o.size, d.path)
	d.stage = stageWaiting
	if fromMemory {
		c.failRestore(d, errs.New(errs.CodeSegmentUnavailable, "object %v cannot be copied for another job: %v", o.id, cause))
		c.settle(o)
		return
	}
	c.failRestore(d, c.unreadable(of, cause))
	c.settle(o)
	if of.restore == nil && !of.dead { // else that read ends likewise
		c.forget(of)
	}
}

// failCopies ends the copies of an object for which somebody waits and of which nothing is there yet.
func (c *Core) failCopies(o *object, err *errs.Error) {
	for _, job := range sortedKeys(o.copies) {
		if x := o.copies[job]; x != nil && x.restore != nil && x.restore.stage != stageReading {
			c.failRestore(x.restore, err)
			c.settle(x)
		}
	}
}

// letCopiesGo ends the copies of an object of which something was freed, as soon as nobody has them pinned.
func (c *Core) letCopiesGo(o *object) {
	for _, job := range sortedKeys(o.copies) {
		if x := o.copies[job]; x != nil && !x.gone {
			x.gone = true
			c.settle(x)
		}
	}
}

// copyGone follows up on a copy that was destroyed.
func (c *Core) copyGone(x *object) {
	delete(c.copies, x)
	if x.of != nil {
		delete(x.of.copies, x.job)
		c.settle(x.of)
	}
}

// dropCopiesOf ends the copies that lie in the file of a job that is over.
func (c *Core) dropCopiesOf(job ids.JobID) {
	for _, x := range c.sortedCopies() {
		if x.job == job && !x.dead {
			x.gone = true
			c.settle(x)
		}
	}
}

func (c *Core) sortedCopies() []*object {
	out := make([]*object, 0, len(c.copies))
	for x := range c.copies {
		out = append(out, x)
	}
	slices.SortFunc(out, compareObjects)
	return out
}

func compareObjects(a, b *object) int {
	return cmp.Or(a.id.Compare(b.id), cmp.Compare(a.job, b.job), cmp.Compare(a.attempt, b.attempt))
}

// replayCopy takes a copy over. One whose object is not there any more is adrift: it keeps its place while its job has processes that may read it.
func (c *Core) replayCopy(e record.Entry, r Replay, blocks map[ids.ObjectID]*object) bool {
	x := &object{id: e.ID, attempt: e.Attempt, slot: e.Slot, size: e.Size, job: e.Job}
	if e.State == record.StateRestoring {
		c.replayRead(x, e)
		return x.draining
	}
	if e.State != record.StateSealed || !e.Resident || !c.takeBack(e, r) {
		return false
	}
	x.resident, x.block, x.file, x.path = true, e.Block, e.File, e.Path
	of := c.objs[e.ID].o
	if e.Packed {
		of = blocks[e.ID]
	}
	switch {
	case of != nil && (of.values != nil) == e.Packed && of.attempt == e.Attempt && of.size == e.Size && of.job != e.Job && of.copies[e.Job] == nil:
		x.of, x.meta, x.values = of, of.meta, of.values
		if of.copies == nil {
			of.copies = make(map[ids.JobID]*object)
		}
		of.copies[e.Job] = x
	case len(c.old) == 0:
		if e.File != 0 {
			c.fallbackBytes -= e.Size // it is dropped with the files of no record
		}
		c.giveUpReplay(x)
		return false
	default:
		x.gone, x.quarantine = true, true
		c.adrift = append(c.adrift, x)
		c.orphan(e.ID, ref{o: x})
	}
	c.copies[x] = struct{}{}
	return true
}

// landAdrift ends copies without an object whose readers are gone.
func (c *Core) landAdrift() {
	if len(c.adrift) == 0 || len(c.old) > 0 {
		return
	}
	all := c.adrift
	c.adrift = nil
	for _, x := range all {
		if c.clientsOf(x.job) > 0 {
			c.adrift = append(c.adrift, x)
			continue
		}
		x.quarantine = false
		c.settle(x)
	}
}

// fileJobs are the jobs in whose files something lies.
func (c *Core) fileJobs() (out []ids.JobID) {
	for _, o := range c.alloc.Owners() {
		out = append(out, ids.JobID(o))
	}
	return out
}
