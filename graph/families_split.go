package graph

import (
	"slices"
	"time"
)

// splitPause is how long a worker for which nothing was found waits before it looks again for a block to split.
const splitPause = int64(10 * time.Millisecond)

// splitOff gives a worker that has no block left the end of another's block, if that saves more time than the moves
// cost.
func (h *families) splitOff(w *worker) bool {
	if h.noSplit {
		return false
	}
	at, cut, most := -1, none, int64(0)
	for i, b := range h.blocks {
		if b.owner == nil || b.owner == w || h.first(b) == none {
			continue
		}
		if p, gain := h.splitPoint(b); p != none && (at < 0 || gain > most) {
			at, cut, most = i, p, gain
		}
	}
	if at < 0 {
		h.noSplit = true
		return false
	}
	b := h.blocks[at]
	if cut > b.start {
		h.give(h.split(at, cut), w)
		return true
	}
	b.owner.claims.blocks = slices.DeleteFunc(b.owner.claims.blocks, func(o *block) bool { return o == b })
	h.give(b, w)
	return true
}

// splitPoint gives the position from which another worker may take a block's roots, and the ns that this saves, or none
// if it saves nothing. The position is in the middle half of the roots that are left, where the least would have
// to be moved.
func (h *families) splitPoint(b *block) (int32, int64) {
	o := b.owner
	n := b.end - b.start
	if o.paused {
		return b.start, int64(n) * h.perRoot()
	}
	if o.backlog()+int64(n)*h.perRoot()/int64(o.threads) <= stealLatency {
		return none, 0
	}
	lo, hi := b.start+n/4, b.start+n-1-n/4
	best, least := none, 0.0
	h.walk(b.begin, hi, func(p int32, front float64) bool { // front is what p and later roots need of earlier ones
		if p+1 >= lo && p+1 <= hi && (best == none || front <= least) {
			best, least = p+1, front
		}
		return true
	})
	if best == none { // no task of the block has run
		best = b.start
	}
	wait := o.backlog() + int64(best-b.start)*h.perRoot()/int64(o.threads)
	cost := stealLatency + int64(2*least/h.cfg.Bandwidth*1e9)
	if wait <= cost {
		return none, 0
	}
	return best, wait - cost
}

// perRoot is how long a root and its share of all other tasks take, in ns of one thread.
func (h *families) perRoot() int64 {
	return int64(float64(h.measures.meanDuration()) * float64(len(h.at)) / float64(len(h.roots)))
}
