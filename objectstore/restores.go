package objectstore

import (
	"errors"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/objectstore/alloc"
	"mobula/objectstore/spill"
	"mobula/wire"
)

// requestRestore asks for an object's bytes in memory. A get moves it before what only arguments need, and another node before both: reads for other nodes have
// places of their own. If they waited for the places that imports have, two nodes could wait for each other.
func (rs *restores) requestRestore(o *object, l lane) *demand {
	d := o.restore
	if d == nil {
		d = &demand{lane: l, need: o.size, o: o}
		o.restore = d
		rs.demands.enqueue(d)
	} else if l == laneGet && d.lane == laneArgs || l == laneExport && d.lane != laneExport && d.stage != stageReading {
		d.lane = l
		if d.stage == stageWaiting {
			rs.demands.queues[l].Push(d)
		}
	}
	return d
}

// cancelRestore withdraws a restore that nobody waits for any more, unless it is to keep the last copy. What was let go needs none, and the file that it would be
// made in may go with its job before there is room.
func (rs *restores) cancelRestore(o *object) {
	d := o.restore
	if d == nil || len(d.gets) > 0 || len(d.sets) > 0 || o.exports > 0 || d.rescues && !o.gone || o.isNowhere() {
		return
	}
	if d.stage == stageWaiting {
		d.stage = stageDone
		o.restore = nil
		rs.copied(d)
		rs.objects.relist(o)
	}
}

// eachRestore visits every restore that waits or is under way.
func (rs *restores) eachRestore(visit func(*demand)) {
	var all []*demand
	collect := func(d *demand) {
		if d.o != nil {
			all = append(all, d)
		}
	}
	for _, l := range []lane{laneGet, laneArgs, laneExport} {
		rs.demands.queues[l].each(l, collect)
	}
	for _, n := range sortedKeys(rs.jobs) {
		switch j := rs.jobs[n].(type) {
		case *demand:
			collect(j)
		case *reservation:
			if j.d != nil {
				collect(j.d)
			}
		}
	}
	for _, d := range all {
		visit(d)
	}
}

// read starts a restore that has its room.
func (rs *restores) read(d *demand) {
	d.stage = stageReading
	*rs.reads(d.lane)++
	rs.objects.record(d.o) // so that a new core does not use the extent while it is written
	rs.readInto(d, rs.newJob(d))
}

func (rs *restores) restoreDone(e RestoreDone) {
	d, ok := takeJob[*demand](rs.step, e.Job)
	if !ok {
		return
	}
	*rs.reads(d.lane)--
	o := d.o
	fromMemory := rs.copied(d)
	d.rescues = false
	if d.cold && e.Err == nil {
		rs.space.alloc.Back(alloc.Owned{Owner: d.block.Owner, Range: d.block.Range()})
		d.cold = false
	}
	if d.cancelled {
		o.filling = nil
		rs.giveBack(d)
		if rs.objects.relist(o); !o.dead { // copies for other jobs keep it
			rs.objects.record(o)
		}
		return
	}
	if d.cold && errors.Is(e.Err, errs.ErrSegmentUnavailable) {
		rs.space.punchUnwritten(d.block)
		d.cold, d.imports, d.stage = false, false, stageWaiting
		rs.objects.record(o) // which names the block no more
		rs.up.withoutMemory(d, e.Err)
		return
	}
	if e.Err != nil && fromMemory && (o.of == nil || !o.of.resident && !o.of.spilled) {
		d.twinFailed = true
		rs.underWay++
		rs.readInto(d, rs.newJob(d))
		return
	}
	if e.Err != nil {
		lasting := errors.Is(e.Err, spill.ErrCorrupt) || errors.Is(e.Err, spill.ErrMissing)
		imported := d.imports
		if rs.up.importFailed(d, lasting) {
			*rs.reads(d.lane)++
			rs.readInto(d, rs.newJob(d))
			return
		}
		if d.tries++; !lasting && d.tries < maxTries {
			if imported {
				rs.log("an object could not be read from another node, trying again", e.Err)
			} else {
				rs.log("a spilled object could not be read, trying again", e.Err)
			}
			rs.retryRead(d)
			return
		}
		if o.of != nil {
			rs.copyFailed(d, fromMemory, e.Err)
			return
		}
		rs.giveBack(d)
		d.stage = stageWaiting
		rs.failRestore(d, rs.unreadable(o, e.Err))
		rs.forget(o)
		return
	}
	d.stage = stageDone
	o.resident, o.block, o.file, o.path = true, d.block, d.file, d.path
	switch {
	case d.imports:
		rs.counts.Imports++
		rs.counts.ImportedBytes += o.size
		if of := o.origin(); !of.gone && rs.objects.objs[o.id].o == of {
			rs.emit(ToOwner{o.id.Job(), Imported{o.id, o.attempt}}) // for whichever job
		}
	case o.of != nil || fromMemory:
		rs.counts.CopiesMade++
		rs.counts.CopiedBytes += o.size
		if o.of == nil && !o.gone {
			rs.emit(ToOwner{o.id.Job(), Imported{o.id, o.attempt}})
		}
	default:
		rs.counts.Restores++
		rs.counts.RestoredBytes += o.size
	}
	rs.objects.record(o)
	for _, g := range d.gets {
		rs.emit(Forget{NoteKey{N: g.note}})
		rs.up.answerGet(g.client, g.id, ref{o, g.sub}, g.refs)
	}
	for _, s := range d.sets {
		if s.missing--; s.missing == 0 && !s.answered {
			rs.up.answerSet(s)
		}
	}
	for _, x := range rs.up.exportsOf(o) {
		rs.up.exported(x)
	}
	o.restore = nil // not before all who waited have their pins
	rs.objects.relist(o)
}

// giveBack frees the room of a restore that has brought nothing.
func (rs *restores) giveBack(d *demand) {
	if d.cold {
		rs.space.punchUnwritten(d.block)
	}
	rs.objects.giveBack(d.block, d.file, d.o.size, d.path)
}

// unreadable is the error of an object whose spilled copy, or the last one on another node, cannot be read.
func (rs *restores) unreadable(o *object, cause error) *errs.Error {
	line, where := "a spilled object is lost", "its spilled copy"
	if !o.spilled {
		line, where = "an object that was on other nodes is lost", "its copy on another node"
	}
	err := errs.New(errs.CodeObjectLost, "object %v: %s cannot be read: %v", o.id, where, cause)
	err.Cause = []*errs.Error{errs.From(cause)}
	rs.log(line, err)
	rs.counts.Lost++
	return err
}

// failRestore ends a restore for everyone who waits for it. If something is under way for
// it, its room is given back when that ends. Nobody is refused where only sets of arguments have waited, which are admitted again.
func (rs *restores) failRestore(d *demand, err *errs.Error) (refused bool) {
	o := d.o
	refused = len(d.gets) > 0
	d.cancelled = d.stage != stageWaiting
	if d.stage == stageReading {
		o.filling = d
		rs.objects.record(o)
	}
	if d.rescues && d.stage != stageReading {
		d.rescues = false
		rs.copied(d)
	}
	d.stage = stageDone
	o.restore = nil
	for _, g := range d.gets {
		rs.emit(Forget{NoteKey{N: g.note}})
		if errors.Is(err, errs.ErrObjectLost) {
			rs.emit(ToOwner{g.job, Lost{ID: g.id, Client: g.client, Copy: o.attempt, Err: err}})
		} else {
			rs.clients.toClient(g.client, &wire.Resolved{ID: g.id, Fetch: true, Result: wire.Result{Kind: wire.ResultError, Err: err}})
		}
	}
	for _, x := range rs.up.exportsOf(o) {
		rs.up.endExport(x.key(), err)
		refused = true
	}
	sets := d.sets
	d.gets, d.sets = nil, nil
	for _, s := range sets {
		if !errors.Is(err, errs.ErrObjectLost) {
			refused = rs.up.noRoom(s, err) || refused
			continue
		}
		for i, r := range s.objs {
			if r.o == o {
				rs.up.failSet(s, i, err)
				refused = true
				break
			}
		}
	}
	return refused
}

// loseIfNowhere gives up an object whose last copy, for another job, found no room.
func (rs *restores) loseIfNowhere(o *object) {
	if o.isNowhere() {
		rs.forget(o)
		rs.emit(ToOwner{o.id.Job(), Lost{ID: o.id, Copy: o.attempt, Err: lostError(o.id, "has no room here, and is on no node any more")}})
	}
}

// isNowhere tells whether an object that was not let go has no copy left but for what is for another job.
func (o *object) isNowhere() bool {
	return o.of == nil && !o.dead && !o.gone && !o.resident && !o.spilled && !o.draining && len(o.elsewhere) == 0
}

// forget drops an object that cannot be read any more; nothing waits for it but copies for other jobs. Those that are pinned stay.
func (rs *restores) forget(o *object) {
	rs.failCopies(o, lostError(o.id, "has no spilled copy any more"))
	for id, r := range rs.objects.idsOf(o) {
		delete(rs.objects.objs, id)
		if len(o.copies) > 0 {
			rs.objects.orphan(id, r)
		}
	}
	rs.objects.letGo(o)
	rs.objects.relist(o)
}

// supersede takes an id from what has it. That stays as long as somebody reads it; who waits for it is told why it does not come.
func (rs *restores) supersede(id ids.ObjectID, was ref, why *errs.Error) {
	o := was.o
	delete(rs.objects.objs, id)
	if o.values != nil {
		o.values[was.sub].gone = true
		o.live--
	}
	if o.live == 0 { // of a block: the last of its values
		rs.objects.letGo(o)
		if o.restore != nil {
			rs.failRestore(o.restore, why)
		}
		rs.failCopies(o, why)
	}
	if o.pinned() || len(o.copies) > 0 || o.spilling || o.restore != nil || o.filling != nil {
		rs.objects.orphan(id, was)
		rs.objects.record(o)
	}
	rs.objects.relist(o)
}

// canRestore tells whether there is a place for a restore of this lane.
func (rs *restores) canRestore(l lane) bool {
	return !rs.recovering && *rs.reads(l) < rs.cfg.MaxRestores
}

// reads counts the restores of a lane that are under way: those for other nodes apart from the others.
func (rs *restores) reads(l lane) *int {
	if l == laneExport {
		return &rs.forNodes
	}
	return &rs.underWay
}
