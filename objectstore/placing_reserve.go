package objectstore

import (
	"mobula/internal/ids"
	"mobula/objectstore/alloc"
)

// reserve asks for memory behind the unbacked parts of a demand's block, in steps.
func (rm *placing) reserve(d *demand, rs []alloc.Range) {
	if !d.exact && !d.cold && rm.space.memoryTarget == 0 {
		last := &rs[len(rs)-1]
		if ahead := rm.space.alloc.ExtendToStep(*last, rm.space.reserveStep()); !rm.space.pending(d.block.Owner, ahead) {
			*last = ahead
		}
	}
	rm.space.reserving++
	if d.lane == laneCreate {
		rm.creates.reservingCreates++
	}
	rm.emit(Reserve{Job: rm.newJob(&reservation{d, d.block.Owner, rs}), Place: ids.JobID(d.block.Owner), Ranges: rs, Look: d.cold})
}

func (rm *placing) reserveDone(e ReserveDone) {
	r, ok := takeJob[*reservation](rm.step, e.Job)
	if !ok {
		return
	}
	rm.space.reserving--
	d := r.d
	if d != nil && d.lane == laneCreate {
		rm.creates.reservingCreates--
	}
	if e.Err == nil && (d == nil || !d.cold) {
		for _, x := range r.ranges {
			rm.space.alloc.Back(alloc.Owned{Owner: r.owner, Range: x})
		}
		rm.space.reserveRetryAt = 0
	}
	switch {
	case d == nil:
		if e.Err != nil {
			rm.space.reserveRetryAt, rm.space.reserveErr = rm.after(rm.cfg.Stall), e.Err
		}
	case d.cancelled:
		rm.space.freeBlock(d.block)
	case e.Err == nil:
		d.stage = stageWaiting
		rm.placed(d)
	case !d.exact && !d.cold:
		d.exact = true // a whole step is not there, but what is needed may be
		rm.reserve(d, rm.space.alloc.Unbacked(d.block))
	default:
		rm.withoutMemory(d, e.Err)
	}
	rm.space.punchUnowned(r)
}

// withoutMemory goes on with a demand that has a block for which no memory could be had.
func (rm *placing) withoutMemory(d *demand, err error) {
	if d.reserveFailed && !d.takingFromOthers {
		rm.reserveFailed(d, err)
		return
	}
	// Only memory that the segment has already is left, for a while: back to the head of the queue.
	d.reserveFailed = true
	rm.log("no memory can be reserved for the object store", err)
	rm.space.reserveRetryAt, rm.space.reserveErr = rm.after(rm.cfg.Stall), err
	if d.takingFromOthers {
		d.takingFromOthers, d.takeRetryAt = false, rm.space.reserveRetryAt
	}
	rm.space.freeBlock(d.block)
	rm.waitAgain(d)
	rm.wakeAt(rm.space.reserveRetryAt)
}

// waitAgain puts a demand back at the head of its lane, unless it is a restore that nobody waits for any more: while its room was on its way it could not be
// withdrawn.
func (rm *placing) waitAgain(d *demand) {
	d.stage = stageWaiting
	rm.demands.queues[d.lane].PushFront(d)
	if d.o != nil {
		rm.restores.cancelRestore(d.o)
	}
}

// reserveFailed ends a demand for which no memory could be reserved, twice: a restore goes on in a
// file outside the segment.
func (rm *placing) reserveFailed(d *demand, err error) {
	rm.space.freeBlock(d.block)
	rm.space.reserveRetryAt, rm.space.reserveErr = rm.after(rm.cfg.Stall), err
	if d.o != nil && rm.overBudget(d.need) == 0 {
		rm.fallback(d)
		return
	}
	d.stage = stageWaiting
	rm.failDemand(d, rm.unavailable(d))
}

// takeFromOtherJobs serves a demand while no memory can be reserved, and none of its owner's own is free: what others have warm is given back, and as
// much is reserved anew. Where that fails it is tried again after a while, and until then the demand waits for what others let go of.
func (rm *placing) takeFromOtherJobs(d *demand) (alloc.Block, bool) {
	warm, n := rm.space.alloc.Warm(), (d.need+alloc.Page-1)&^(alloc.Page-1)
	if warm < alloc.Page || rm.now < d.takeRetryAt {
		return alloc.Block{}, false
	}
	b, ok := rm.space.alloc.Alloc(rm.owner(d), d.need, false)
	if !ok || rm.held(d, b) {
		return alloc.Block{}, false
	}
	rm.space.punchTakenFromOthers()
	left := rm.space.alloc.Warm() // it is less by what the block took
	if rs := rm.space.alloc.Release(left-min(n, left), n); len(rs) > 0 {
		rm.emit(Punch{rs})
	}
	d.exact, d.takingFromOthers = true, true
	return b, true
}

// held tells whether memory is on its way to a part of a block just cut, in another owner's file, and then gives the block back: its
// demand waits for the reservation's end.
func (rm *placing) held(d *demand, bs ...alloc.Block) bool {
	for _, b := range bs {
		d.held = d.held || rm.space.pending(b.Owner, rm.space.alloc.Span(b))
	}
	if d.held {
		rm.space.punchTakenFromOthers()
		for _, b := range bs {
			rm.space.freeBlock(b)
		}
	}
	return d.held
}
