package objectstore

import (
	"cmp"
	"maps"
	"slices"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/objectstore/alloc"
)

// escape decides about the head of the queue when nothing can be evicted or spilled for it. It
// waits while someone may let go; when it is plain that nobody will, or nothing has moved
// for Stall, the head is served from a file outside the segment, or ends with an error that
// names all figures. It tells whether the head is off the queue.
func (rm *placing) escape(d *demand) bool {
	if p := rm.objects.potential(); p > rm.progress.stall.best && p-rm.progress.stall.best > d.need/64 {
		rm.progress.stall = stallState{best: p}
		d.since = rm.now
	}
	if rm.fallbacks > 0 || rm.space.reserving > 0 || rm.recovering {
		return false // their ends step the core again
	}
	if due := d.since + int64(rm.cfg.Stall); rm.now >= due {
		rm.progress.stall.stuck = true // those behind need not wait as long again
	} else if rm.progress.lastHope.ticket != d.ticket && !rm.progress.stall.stuck && !rm.hopeless(d) {
		rm.wakeAt(due)
		return false
	}
	if err := rm.noEscape(d); err != nil {
		if rm.patient(d) || rm.spilling.hope(d, err) {
			return false
		}
		rm.demands.queues[d.lane].Pop()
		rm.giveUp(d, err)
		return true
	}
	if d.pack != nil {
		rm.demands.queues[d.lane].Pop()
		rm.giveUp(d, nil)
		return true
	}
	rm.demands.queues[d.lane].Pop()
	rm.fallback(d)
	return true
}

// noEscape says why a file outside the segment is no way out either.
func (rm *placing) noEscape(d *demand) *errs.Error {
	short := rm.now < rm.space.coldAt && d.lane == laneCreate
	switch {
	case short:
		return rm.unavailable(d)
	case rm.progress.disk.err != nil && rm.objects.cold.n > 0 && !rm.drains(d):
		return errs.New(errs.CodeOutOfDisk, "%v: %s: free space in the spill directories or add one", rm.progress.disk.err, rm.space.figures(d.need))
	case rm.space.fallbackBytes+d.need > rm.cfg.FallbackBytes:
		return errs.New(errs.CodeStoreFull, "everything is pinned: %s: close views, raise the store's limit or its disk budget", rm.space.figures(d.need))
	case rm.progress.drain.fileErr != nil && rm.now < rm.progress.drain.fileAt:
		rm.wakeAt(rm.progress.drain.fileAt)
		return rm.noFileError(d)
	}
	return nil
}

// hopeless tells whether every byte in the store is held by a task that itself waits: to create, in
// a get, or for arguments. Views of clients may be closed at any time, so they are hope.
func (rm *placing) hopeless(d *demand) bool {
	if len(rm.objects.pinned) > 0 || len(rm.nodes.exports) > 0 || len(rm.clients.old) > 0 || rm.restores.underWay+len(rm.restores.rereads) > 0 || len(rm.copies.draining) > 0 {
		return false
	}
	if rm.objects.cold.n > 0 && rm.objects.potential() >= alloc.Rounded(d.need) {
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

func (ar *args) taskWaits(t ids.TaskID) bool { return ar.idle[t] || ar.creates.creating[t] > 0 }

// fallback asks for a file to serve a demand from.
func (rm *placing) fallback(d *demand) {
	d.stage, d.block = stageFallback, alloc.Block{}
	rm.fallbacks++
	rm.space.fallbackBytes += d.need
	rm.emit(CreateFallback{Job: rm.newJob(d), Size: max(d.need, 1), Last: rm.drains(d)})
}

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K {
	return slices.Sorted(maps.Keys(m))
}

// fallbackDone gives the escape's file to the demand that waited for it.
func (rm *placing) fallbackDone(e FallbackDone) {
	d, ok := takeJob[*demand](rm.step, e.Job)
	if !ok {
		if e.Err == nil {
			rm.clients.dropFile(e.File, e.Path) // of an earlier core
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
			rm.noFile(d, e.Err)
		}
		return
	}
	rm.progress.drain.fileErr = nil
	rm.counts.Fallbacks++
	rm.log("an object is served from a file outside the store: nothing in it can be unpinned", nil)
	d.block, d.file, d.path = alloc.Block{}, e.File, e.Path
	rm.placed(d)
}

// noFile notes that no file outside the segment could be made for a demand, and has it wait, or ends it.
func (rm *placing) noFile(d *demand, err error) {
	rm.log("no fallback file could be made", err)
	rm.progress.drain.fileErr, rm.progress.drain.fileAt = err, rm.after(rm.cfg.RetrySpill)
	if rm.patient(d) {
		d.stage = stageWaiting
		rm.demands.queues[d.lane].PushFront(d)
		rm.wakeAt(rm.progress.drain.fileAt)
		return
	}
	rm.giveUp(d, rm.noFileError(d))
}

func (rm *placing) noFileError(d *demand) *errs.Error {
	return errs.New(errs.CodeOutOfDisk, "no file outside the store can be made: %v: %s", rm.progress.drain.fileErr, rm.space.figures(d.need))
}
