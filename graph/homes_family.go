package graph

import "math"

// share is how many roots there are for a worker, if each thread has as many.
func (h *homes) share(w *worker) int32 {
	return int32(max(len(h.roots)*w.threads/max(h.workers.threads, 1), 1))
}

// room is what a worker may hold of roots' families at once: as much as the tasks it has slots for are
// likely to hold.
func (h *homes) room(w *worker) float64 {
	room := max(math.Ceil(min(h.cfg.Saturation, 2)*float64(w.threads)), 1) * h.measures.mean() * (1 + h.fanIn)
	if b := h.budget(); b > 0 && h.measures.all.n > 0 {
		room = min(room, float64(b)*float64(w.threads)/float64(h.workers.threads))
	}
	return room
}

// family says where a block should end that begins with the first root of b: the cogroup of that root.
//
// Walking along the line, front is what the block has made and a later root needs. It is in the worker's memory
// then, and where the block ends it is what may have to be moved. A block ends where nothing would
// have to be moved. Failing that it ends where the least has to be moved a root, of the places before front
// has become too much for the worker to hold or the block more than its share. What is too much
// grows with the logarithm of the block's length. A tree's front does no more, and so a subtree can
// have a worker to itself; of roots that all wait for each other several workers take a few each.
func (h *homes) family(w *worker, b *block) int32 {
	room := h.room(w)
	top, base := 0.0, int32(1)
	best, cost := b.start+1, math.Inf(1)
	h.walk(b.start, min(b.end, b.start+h.share(w)), func(p int32, front float64) bool {
		n := p + 1 - b.start
		if front <= room*nothing {
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

// walk goes along the line from start until end, or until see says no. see is told front: what is made from
// start up to and with p, and needed later.
func (h *homes) walk(start, end int32, see func(p int32, front float64) bool) {
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

// nothing is the part of a worker's room that does not matter.
const nothing = 1.0 / 64
