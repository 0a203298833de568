package objectstore

import (
	"mobula/objectstore/alloc"
)

// serve makes one step of progress for the head, and tells whether there may be another.
func (rm *placing) serve() bool {
	d := rm.oldestDemand()
	if d == nil {
		rm.resetFullDisk()
		return false
	}
	if rm.place(d) {
		return true
	}
	if d.held {
		return false // the reservation's end steps the core
	}
	if d.since == 0 {
		d.since = rm.now
		rm.progress.stall.best = rm.objects.reclaimable()
	}
	placed, coming := rm.makeRoom(d)
	if placed {
		return true
	}
	if coming {
		return false
	}
	if rm.progress.diskFull() {
		if h := rm.nextArgHolder(); h != nil && h != d && rm.creates.reservingCreates == 0 && rm.place(h) {
			return true
		}
		return rm.resolveStall(d)
	}
	// Everything is pinned. What others ask may still fit where this does not.
	if d.lane == laneCreate {
		for _, l := range []lane{laneExport, laneGet} {
			if g := rm.demands.queues[l].peek(l); g != nil && rm.restores.canRestore(l) && rm.place(g) {
				return true
			}
		}
	} else if r := rm.demands.queues[laneCreate].peek(laneCreate); r != nil && d.lane != laneArgs && rm.creates.reservingCreates == 0 && rm.place(r) {
		return true
	}
	return rm.resolveStall(d)
}

// argsDelay is how many later arrivals may go before a restore that only arguments need: running
// tasks' creates and gets let memory go, tasks that have not started do not.
const argsDelay = 256

// oldestDemand is the head that has waited longest, with the lane's handicap; nil if none waits that
// could be served now. While memory is being reserved for a create the later ones wait:
// answers keep the order.
func (rm *placing) oldestDemand() *demand {
	var best *demand
	var at uint64
	if rm.progress.diskFull() {
		for _, l := range []lane{laneExport, laneGet, laneArgs} {
			if d := rm.demands.queues[l].peek(l); d != nil && rm.restores.canRestore(l) {
				return d
			}
		}
	}
	for l := range lanes {
		d := rm.demands.queues[l].peek(l)
		if d == nil || d.o != nil && !rm.restores.canRestore(l) || (l == laneCreate && rm.creates.reservingCreates > 0) {
			continue
		}
		t := d.ticket
		if l == laneArgs {
			t += argsDelay
		}
		if best == nil || t < at {
			best, at = d, t
		}
	}
	return best
}

// place gives a waiting demand a block, if there is one.
func (rm *placing) place(d *demand) bool {
	d.held = false
	if rm.spilling.overTarget(alloc.Rounded(d.need)) {
		return false
	}
	b, ok := rm.space.alloc.Alloc(rm.owner(d), d.need, rm.now < rm.space.reserveRetryAt)
	if !ok && rm.now < rm.space.reserveRetryAt {
		b, ok = rm.takeFromOtherJobs(d)
	}
	if !ok || rm.held(d, b) {
		return false
	}
	rm.space.punchTakenFromOthers()
	rm.space.lastOwner, rm.space.hasLastOwner = b.Owner, true
	rm.demands.dequeue(d)
	rm.progress.noteProgress()
	d.block, d.since, d.cold = b, 0, false
	rm.progress.stall.stalled = false
	if rs := rm.space.alloc.Unbacked(b); len(rs) > 0 {
		d.stage = stageReserving
		d.cold = rm.mayBeCold(d, rs)
		rm.reserve(d, rs)
		return true
	}
	rm.placed(d)
	return true
}

// mayBeCold tells whether memory need not be put behind parts of a demand's block before they are used: whoever writes them brings it. A client
// does so for a block of which nothing is backed, an import from another node for any.
func (rm *placing) mayBeCold(d *demand, unbacked []alloc.Range) bool {
	if rm.cfg.ColdFrom == 0 || d.block.Slab || d.pack != nil {
		return false
	}
	var n uint64
	for _, r := range unbacked {
		n += r.Size
	}
	return n >= rm.cfg.ColdFrom && (d.o != nil && d.o.comesFromNode() || d.o == nil && n == d.block.Size)
}

// makeRoom evicts copies until the demand is placed, or else sees to it that enough is being
// spilled: then room is coming.
func (rm *placing) makeRoom(d *demand) (placed, coming bool) {
	need := alloc.Rounded(d.need)
	if rm.objects.reclaimable() < need {
		return false, false
	}
	for rm.objects.second.head != nil {
		rm.counts.Evictions++
		rm.objects.evict(rm.objects.second.head)
		if rm.place(d) {
			return true, false
		}
		if d.held {
			return false, true
		}
	}
	free := rm.space.freeBytes()
	missing := uint64(1) // enough is free, in parts too small
	if need > free {
		missing = need - free
	}
	rm.spilling.spill(missing, true)
	return false, rm.spilling.spills > 0 || (rm.objects.cold.n > 0 && rm.progress.canSpill())
}
