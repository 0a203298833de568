package objectstore

import (
	"math"
	"slices"

	"mobula/internal/errs"
	"mobula/objectstore/alloc"
)

// resolveStall decides about the head of the queue when nothing can be evicted or spilled for it. It
// waits while someone may let go; when it is plain that nobody will, or nothing has moved
// for Stall, the head is served from a file outside the segment, or ends with an error that
// names all figures. It tells whether the head is off the queue.
func (rm *placing) resolveStall(d *demand) bool {
	if p := rm.objects.reclaimable(); p > rm.progress.stall.best && p-rm.progress.stall.best > d.need/64 {
		rm.progress.stall = stallState{best: p}
		d.since = rm.now
	}
	if rm.fallbacks > 0 || rm.space.reserving > 0 || rm.recovering {
		return false // their ends step the core again
	}
	if due := d.since + int64(rm.cfg.Stall); rm.now >= due {
		rm.progress.stall.stalled = true // those behind need not wait as long again
	} else if rm.progress.lastCollect.ticket != d.ticket && !rm.progress.stall.stalled && !rm.deadlocked(d) {
		rm.wakeAt(due)
		return false
	}
	over := rm.overBudget(d.need)
	if over > 0 && d.pack == nil && rm.spilling.spillFiles(over) {
		return false
	}
	err := rm.fallbackRefusal(d)
	if over > 0 && (err == nil || err.Code == errs.CodeStoreFull) && !rm.deadlocked(d) && rm.spilling.collectAndWait(d) {
		return false
	}
	if err != nil {
		if rm.keepsWaiting(d, err) {
			return false
		}
		rm.demands.queues[d.lane].Pop()
		rm.failDemand(d, err)
		return true
	}
	if over > 0 {
		rm.progress.stall.stalled = false // the next one waits as long again
	}
	if d.pack != nil {
		rm.demands.queues[d.lane].Pop()
		rm.failDemand(d, nil)
		return true
	}
	rm.demands.queues[d.lane].Pop()
	rm.fallback(d)
	return true
}

// fallbackRefusal says why a file outside the segment is no way out either.
func (rm *placing) fallbackRefusal(d *demand) *errs.Error {
	short := rm.now < rm.space.reserveRetryAt && d.lane == laneCreate
	switch {
	case short:
		return rm.unavailable(d)
	case rm.progress.disk.err != nil && rm.objects.cold.n > 0 && !rm.bringsRelease(d):
		return errs.New(errs.CodeOutOfDisk, "%v: %s: free space in the spill directories or add one", rm.progress.disk.err, rm.space.figures(d.need))
	case d.forProgram() && rm.keptBytes()+d.need > rm.mostKept():
		return errs.New(errs.CodeStoreFull, "everything is pinned: %d bytes are kept by views and unfinished puts, %d may be: %s: close views, raise the store's limit or its disk budget",
			rm.keptBytes(), rm.mostKept(), rm.space.figures(d.need))
	case rm.progress.fullDisk.fileErr != nil && rm.now < rm.progress.fullDisk.fileAt:
		rm.wakeAt(rm.progress.fullDisk.fileAt)
		return rm.fallbackError(d)
	}
	return nil
}

// overBudget is by how much what cannot go, with a demand of so many bytes, would be more than the limit and the disk budget together; 0: it is not. What is free
// in the segment counts though it be in pieces that are too small.
func (rm *placing) overBudget(need uint64) uint64 {
	have, most := rm.space.fallbackBytes+need, plus(rm.objects.reclaimable(), rm.cfg.FallbackBytes)
	return have - min(have, most)
}

// keptBytes is what programs keep for as long as they like, by views and puts that they have not finished; mostKept is what that may be: a view
// or put that would be more together with it is refused. What tasks hold they let go of when they end: it refuses nobody, and is not refused.
func (rm *placing) keptBytes() uint64 { return rm.objects.viewedBytes + rm.space.putBytes }

func (rm *placing) mostKept() uint64 { return plus(rm.space.objectLimit(), rm.cfg.FallbackBytes) }

// forProgram tells whether only a program waits for what is demanded, and may keep it for as long as it likes.
func (d *demand) forProgram() bool {
	if d.o != nil {
		return len(d.gets) > 0 && len(d.sets) == 0 && d.o.exports == 0 && !d.rescues
	}
	return d.pack == nil && d.task.IsZero()
}

// plus adds what may be without bound.
func plus(a, b uint64) uint64 { return a + min(b, math.MaxUint64-a) }

// deadlocked tells whether every byte in the store is held by a task that itself waits: to create, in
// a get, or for arguments. Views of clients may be closed at any time, so they are not counted as held for good.
func (rm *placing) deadlocked(d *demand) bool {
	if len(rm.objects.pinned) > 0 || len(rm.nodes.exports) > 0 || len(rm.clients.old) > 0 || rm.restores.underWay+rm.restores.forNodes+len(rm.restores.readRetries) > 0 || len(rm.copies.inFlightReads) > 0 {
		return false
	}
	if rm.objects.cold.n > 0 && rm.objects.reclaimable() >= alloc.Rounded(d.need) {
		return false // enough could be spilled, if the disk came back
	}
	for _, g := range rm.creates.grants {
		if g.task.IsZero() || !rm.args.taskWaits(g.task) {
			return false
		}
	}
	for _, l := range rm.args.sets {
		for _, s := range l {
			if s.admitted && s.missing == 0 && !rm.args.taskWaits(s.req.Task) {
				return false
			}
		}
	}
	return true
}

// fallback asks for a file to serve a demand from.
func (rm *placing) fallback(d *demand) {
	d.stage, d.block = stageFallback, alloc.Block{}
	rm.fallbacks++
	rm.space.fallbackBytes += d.need
	rm.emit(CreateFallback{Job: rm.newJob(d), Size: max(d.need, 1), Last: rm.bringsRelease(d)})
}

// fallbackDone gives the file to the demand that waited for it.
func (rm *placing) fallbackDone(e FallbackDone) {
	d, ok := takeJob[*demand](rm.step, e.Job)
	if !ok { // an earlier core has asked for it
		if e.Err == nil && !rm.hasFile(e.File) {
			rm.clients.dropFile(e.File, e.Path)
		}
		return
	}
	rm.fallbacks--
	if e.Err != nil || d.cancelled {
		rm.space.fallbackBytes -= d.need
		if e.Err == nil {
			rm.clients.dropFile(e.File, e.Path)
		}
		if !d.cancelled {
			rm.fallbackFailed(d, e.Err)
		}
		return
	}
	rm.progress.fullDisk.fileErr = nil
	rm.counts.Fallbacks++
	rm.log("an object is served from a file outside the store: nothing in it can be unpinned, or what is free is in pieces", nil)
	d.block, d.file, d.path = alloc.Block{}, e.File, e.Path
	rm.placed(d)
}

// hasFile tells whether something lies in a fallback file. An earlier core may have been lost after it had placed it there, and the answer comes again.
func (rm *placing) hasFile(file uint32) bool {
	for _, g := range rm.creates.grants {
		if g.file == file {
			return true
		}
	}
	return slices.ContainsFunc(rm.objects.all(), func(o *object) bool { return o.file == file })
}

// fallbackFailed notes that no file outside the segment could be made for a demand, and has it wait, or ends it.
func (rm *placing) fallbackFailed(d *demand, err error) {
	rm.log("no fallback file could be made", err)
	rm.progress.fullDisk.fileErr, rm.progress.fullDisk.fileAt = err, rm.after(rm.cfg.RetrySpill)
	if rm.keepsWaiting(d, rm.fallbackError(d)) {
		rm.waitAgain(d)
		rm.wakeAt(rm.progress.fullDisk.fileAt)
		return
	}
	rm.failDemand(d, rm.fallbackError(d))
}

func (rm *placing) fallbackError(d *demand) *errs.Error {
	return errs.New(errs.CodeOutOfDisk, "no file outside the store can be made: %v: %s", rm.progress.fullDisk.fileErr, rm.space.figures(d.need))
}
