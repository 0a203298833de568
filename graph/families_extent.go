package graph

import "math"

// share is how many roots a worker gets if each thread gets as many.
func (h *families) share(w *worker) int32 {
	return int32(max(len(h.roots)*w.threads/max(h.workers.threads, 1), 1))
}

// room is how many bytes of a family a worker may hold at once: as much as the tasks it has slots for are likely
// to hold.
func (h *families) room(w *worker) float64 {
	room := max(math.Ceil(min(h.cfg.Saturation, 2)*float64(w.threads)), 1) * h.measures.mean() * (1 + h.fanIn)
	if b := h.budget(); b > 0 && h.measures.all.n > 0 {
		room = min(room, float64(b)*float64(w.threads)/float64(h.workers.threads))
	}
	return room
}

// family gives the position where a block that begins with the first root of b should end: the cogroup of that
// root.
//
// At each position of the line, front is the bytes that the block has made so far and a later root needs. They are
// in the worker's memory then, and if the block ends there they may have to be moved. A block ends where nothing
// would have to be moved. If there is no such position, it ends where the fewest bytes per root have to be moved,
// before front is more than the worker may hold, or the block more than its share. The bound on front grows with
// the logarithm of the block's length. The front of a tree grows no faster, so one worker can have a whole
// subtree; roots that all wait for each other are shared out among several workers.
func (h *families) family(w *worker, b *block) int32 {
	room := h.room(w)
	top, base := 0.0, int32(1)
	best, cost := b.start+1, math.Inf(1)
	h.walk(b.start, min(b.end, b.start+h.share(w)), func(p int32, front float64) bool {
		n := p + 1 - b.start
		if front <= room*negligible {
			best = p + 1
			return false
		}
		if top = max(top, front); top <= room {
			base = n
		} else if top > room*(1+math.Log2(float64(n)/float64(base))/2) {
			return false
		}
		if x := front / float64(n); x <= cost {
			best, cost = p+1, x
		}
		return true
	})
	return best
}

// walk goes along the line from start to end, or until see returns false. front is the bytes of results made from
// start to p inclusive and needed later.
func (h *families) walk(start, end int32, see func(p int32, front float64) bool) {
	if h.ends == nil {
		h.ends = make([]float64, len(h.roots))
	}
	front := 0.0
	for p := start; p < end; p++ {
		for _, t := range h.made.of(p) {
			if h.last[t] > p {
				size := h.measures.size(t)
				front += size
				h.ends[h.last[t]] += size
				h.used = append(h.used, h.last[t])
			}
		}
		front -= h.ends[p]
		if !see(p, front) {
			break
		}
	}
	for _, q := range h.used {
		h.ends[q] = 0
	}
	h.used = h.used[:0]
}

// negligible is the share of a worker's room that counts as empty.
const negligible = 1.0 / 64
