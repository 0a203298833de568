package objectstore

import (
	"mobula/internal/ids"
	"mobula/objectstore/alloc"
)

// note takes what is held now.
func (n *recentPeak) note(now int64, held uint64, span int64) {
	if now >= n.until {
		n.before = n.now
		if now >= n.until+span {
			n.before = held // a whole span in which nothing happened
		}
		n.now, n.until = held, now+span
	}
	n.now = max(n.now, held)
}

func (n *recentPeak) bytes() uint64 { return max(n.now, n.before) }

// reserveStep is what is reserved at a time, ahead of what is needed: a part of what the store has, so that a
// small one does not hold memory that it never uses.
func (sp *space) reserveStep() uint64 {
	return max(alloc.Page, min(max(sp.cfg.ReserveStep/8, sp.alloc.Backed()/16), sp.cfg.ReserveStep)&^(alloc.Page-1))
}

// purgeFree keeps some memory reserved ahead of demand while the store is used, and gives back what is more than the recent need and a
// step: used again, memory is several times faster than new, but what one piece of work has needed is not kept through all that come after it.
func (sp *space) purgeFree() {
	held := sp.alloc.Held()
	sp.peak.note(sp.now, held, int64(sp.cfg.WarmIdle)/2)
	if sp.lastDemandAt == 0 && sp.alloc.Backed() > 0 {
		sp.lastDemandAt = sp.now // of an earlier core's
	}
	if step := sp.reserveStep(); sp.hasLastOwner && sp.now < sp.lastDemandAt+int64(sp.cfg.WarmIdle) && sp.memoryTarget == 0 && sp.reserving == 0 && sp.now >= sp.reserveRetryAt && sp.alloc.Backed() > 0 && sp.alloc.Warm() < step/2 {
		if r, ok := sp.alloc.FindUnbacked(step); ok {
			sp.reserving++
			sp.emit(Reserve{Job: sp.newJob(&reservation{nil, sp.lastOwner, []alloc.Range{r}}), Place: ids.JobID(sp.lastOwner), Ranges: []alloc.Range{r}})
		}
	}
	if sp.alloc.Warm() <= sp.cfg.WarmBytes {
		return
	}
	// Memory is reserved in steps and used in pieces. Were no step kept beyond the need, it would be given back and reserved anew each time.
	beyond := sp.cfg.WarmBytes
	if sp.now < sp.lastDemandAt+int64(sp.cfg.WarmIdle) {
		beyond = max(beyond, sp.reserveStep())
	}
	keep := sp.peak.bytes() - held + beyond
	if sp.reserving == 0 && sp.alloc.Warm() > keep {
		// A piece at a time: the store does it between messages.
		if rs := sp.alloc.Release(keep, maxPunchBytes); len(rs) > 0 {
			sp.emit(Punch{rs})
			sp.wakeAt(sp.now + 5e6)
		}
	}
	sp.wakeAt(sp.peak.until)
}
