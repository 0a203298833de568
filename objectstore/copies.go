package objectstore

import (
	"cmp"
	"slices"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/objectstore/alloc"
	"mobula/wire"
)

// What another job's processes made a client reads in a copy, which lies in its own job's file: decision 0016. A copy is an object that is
// restored from the one that it is of, from memory, from spill storage or from another node. One that nobody has pinned stays until its
// room is needed, or until something of what it is of was freed. The object stays known, in memory or not, while it has copies.

// reading is what a client reads r in. A copy that there was not yet has to be wanted now.
func (cp *copies) reading(client ids.ClientID, r ref) ref {
	if !cp.clients.foreign(client, r.o) {
		return r
	}
	if x, ok := cp.objects.readAt(client, r); ok {
		return x
	}
	o, job := r.o, cp.clients.jobOf[client]
	_, over := cp.over[job]
	x := &object{id: o.id, attempt: o.attempt, slot: cp.objects.newSlot(), size: o.size, meta: o.meta, values: o.values, job: job, of: o,
		gone: o.gone || len(o.parked) > 0 || over}
	if o.copies == nil {
		o.copies = make(map[ids.JobID]*object)
	}
	o.copies[x.job] = x
	cp.objects.allCopies[x] = struct{}{}
	return ref{x, r.sub}
}

// readAt is what a client may have pinned of r: r itself, or its job's copy if there is one.
func (os *objects) readAt(client ids.ClientID, r ref) (ref, bool) {
	if !os.clients.foreign(client, r.o) {
		return r, true
	}
	x := r.o.copies[os.clients.jobOf[client]]
	return ref{x, r.sub}, x != nil
}

// readInto reads a restore's object into the room that it has.
func (rs *restores) readInto(d *demand, job uint64) {
	e := SpillRead{Job: job, Loc: d.o.loc, Place: d.o.job, Extent: wire.Extent{File: d.file, Off: d.block.Off, Size: d.o.size}}
	if d.file != 0 {
		e.Extent.Off = 0
	}
	of := d.o.of
	switch {
	case of == nil && d.o.spilled:
		rs.emit(e)
	case of != nil && of.resident:
		rs.holdSource(d, of)
		rs.copyFrom(of, job, e)
	case of != nil && of.spilled:
		e.Loc = of.loc
		rs.emit(e)
	case d.rescues:
		rs.copyFrom(d.from, job, e)
	case d.mayCopy():
		rs.holdSource(d, d.o.twin())
		rs.copyFrom(d.from, job, e)
	default:
		rs.up.importInto(d, job, e)
	}
}

// twin is an object in memory that has the bytes of one which is on other nodes alone: they came here for another job. nil: there is none.
func (o *object) twin() *object {
	of := o.origin()
	for _, job := range sortedKeys(of.copies) {
		if x := of.copies[job]; x != o && x.resident {
			return x
		}
	}
	return nil
}

// mayCopy tells whether a restore takes the bytes from a twin: not into a room without memory, which only an import brings, and not once that has failed.
func (d *demand) mayCopy() bool { return !d.cold && !d.twinFailed && d.o.twin() != nil }

// holdSource pins what is in memory until a restore is made of it.
func (rs *restores) holdSource(d *demand, x *object) {
	x.copying++
	d.from = x
	rs.objects.relist(x)
}

// rescue has an object that no other node has any more restored from its twin, which stays until then. Nobody need wait for it.
func (rs *restores) rescue(o *object) {
	d := rs.requestRestore(o, laneGet)
	if d.rescues || d.from != nil || d.cold || d.stage == stageReading { // a read from the node that is gone ends soon, and goes on with the twin
		return
	}
	d.rescues = true
	rs.holdSource(d, o.twin())
}

// copyFrom makes a restore of what is in memory.
func (rs *restores) copyFrom(x *object, job uint64, to SpillRead) {
	rs.emit(CopyObject{Job: job, From: x.job, Of: ref{o: x}.whole(), Place: to.Place, Extent: to.Extent})
}

// copied ends the pin that a copy being made has on what it is of, and tells whether it was made from there.
func (rs *restores) copied(d *demand) bool {
	of := d.from
	if of == nil {
		return false
	}
	d.from = nil
	of.copying--
	rs.objects.relist(of)
	return true
}

// copyFailed ends a copy that cannot be made, unless it can be made from memory by now.
func (rs *restores) copyFailed(d *demand, fromMemory bool, cause error) {
	o, of := d.o, d.o.of
	if !fromMemory && of.resident {
		*rs.reads(d.lane)++
		rs.readInto(d, rs.newJob(d))
		return
	}
	rs.giveBack(d)
	d.stage = stageWaiting
	if fromMemory {
		rs.failRestore(d, errs.New(errs.CodeSegmentUnavailable, "object %v cannot be copied for another job: %v", o.id, cause))
		rs.objects.relist(o)
		return
	}
	rs.failRestore(d, rs.unreadable(of, cause))
	rs.objects.relist(o)
	if of.restore == nil && !of.dead { // else that read ends likewise
		rs.forget(of)
	}
}

// failCopies ends the copies of an object for which somebody waits and of which nothing is there yet.
func (rs *restores) failCopies(o *object, err *errs.Error) {
	for _, job := range sortedKeys(o.copies) {
		if x := o.copies[job]; x != nil && x.restore != nil && x.restore.stage != stageReading {
			rs.failRestore(x.restore, err)
			rs.objects.relist(x)
		}
	}
}

// releaseCopies ends the copies of an object of which something was freed, as soon as nobody has them pinned.
func (os *objects) releaseCopies(o *object) {
	for _, job := range sortedKeys(o.copies) {
		if x := o.copies[job]; x != nil && !x.gone {
			x.gone = true
			os.relist(x)
		}
	}
}

// copyGone follows up on a copy that was destroyed.
func (os *objects) copyGone(x *object) {
	delete(os.allCopies, x)
	if x.of != nil {
		delete(x.of.copies, x.job)
		os.relist(x.of)
	}
}

// dropCopiesOf ends the copies that lie in the file of a job that is over.
func (cp *copies) dropCopiesOf(job ids.JobID) {
	for _, x := range cp.sortedCopies() {
		if x.job == job && !x.dead {
			x.gone = true
			cp.objects.relist(x)
		}
	}
}

// jobOpened forgets that a job was over: a new core must not end it again, and it has a file again.
func (cp *copies) jobOpened(job ids.JobID) {
	if note, over := cp.over[job]; over {
		delete(cp.over, job)
		cp.emit(Forget{note})
	}
	cp.emit(AllowSegment{job})
}

func (cp *copies) sortedCopies() []*object {
	out := make([]*object, 0, len(cp.objects.allCopies))
	for x := range cp.objects.allCopies {
		out = append(out, x)
	}
	slices.SortFunc(out, compareObjects)
	return out
}

func compareObjects(a, b *object) int {
	return cmp.Or(a.id.Compare(b.id), cmp.Compare(a.job, b.job), cmp.Compare(a.attempt, b.attempt), cmp.Compare(a.slot, b.slot))
}

// freeOrphanBlocks ends copies of blocks that are not there any more, when their jobs have no process left that may read in them.
func (cp *copies) freeOrphanBlocks() {
	if len(cp.orphanBlocks) == 0 || len(cp.clients.old) > 0 {
		return
	}
	all := cp.orphanBlocks
	cp.orphanBlocks = nil
	for _, x := range all {
		if cp.clients.clientsOf(x.job) > 0 {
			cp.orphanBlocks = append(cp.orphanBlocks, x)
			continue
		}
		x.quarantine = false
		cp.objects.relist(x)
	}
}

// fileJobs are the jobs in whose files something lies.
func (cp *copies) fileJobs() (out []ids.JobID) {
	for _, o := range cp.space.alloc.Owners() {
		out = append(out, ids.JobID(o))
	}
	return out
}

// dropFiles lets the files of jobs go that are over, once nothing lies in them and no process can use them any more, nor what an earlier core
// began.
func (cp *copies) dropFiles() {
	if cp.recovering {
		return
	}
	for _, job := range sortedKeys(cp.over) {
		if cp.space.alloc.UsedBy(alloc.Owner(job)) > 0 || cp.space.reserving > 0 || cp.clients.clientsOf(job) > 0 {
			continue
		}
		note := cp.over[job]
		delete(cp.over, job)
		if cp.space.lastOwner == alloc.Owner(job) {
			cp.space.hasLastOwner = false
		}
		cp.space.alloc.Forget(alloc.Owner(job))
		cp.emit(DropSegment{job})
		cp.emit(Forget{note}) // last: a core that is lost before leaves it to the next one
	}
}
