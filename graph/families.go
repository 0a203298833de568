package graph

import (
	"slices"
)

// families withholds root tasks and keeps related ones together. Workers claim the line of roots block by block
// (family), and a block's roots run on the worker that owns it. Ownership is not fixed: a worker that has nothing
// left takes up to half of another's block.
type families struct {
	*placement
	*line
	ready     bitset // positions of roots that are withheld
	nready    int
	blocks    []*block  // those with a withheld root, in order
	fanIn     float64   // inputs of a task, on average
	idle      []*worker // workers with a slot for which nothing was found
	idleAt    int64     // when one of them last asked
	retryIdle bool      // there may be something for them now
	noSplit   bool      // in this step no block was found worth splitting

	ends []float64 // scratch of walk: by position, the bytes needed until there
	used []int32   // and where it is not 0
	have []int64   // scratch of pull: by worker, bytes
	who  []int32   // and where it is not 0
}

// block is a run of the line.
type block struct {
	begin      int32   // where it was claimed from
	start, end int32   // the roots that are left
	owner      *worker // nil: not claimed yet
	isFamily   bool    // its roots are related
}

// claims is a worker's part of the line.
type claims struct {
	blocks []*block
}

func newFamilies(ps *placement) *families {
	g := ps.g
	l := newLine(g)
	return &families{placement: ps, line: l, ready: newBitset(len(l.roots)), fanIn: float64(len(g.deps.list)) / float64(max(g.Len(), 1))}
}

func (h *families) takes(t int32) bool { p := h.at[t]; return p != none && h.roots[p] == t }

func (h *families) push(t int32) {
	p := h.at[t]
	if h.ready.has(p) {
		return
	}
	h.ready.set(p)
	h.nready++
	h.retryIdle = true
	i := h.after(p)
	if i > 0 {
		b := h.blocks[i-1]
		if p < b.end {
			return
		}
		if b.owner == nil && !b.isFamily && p == b.end && (i == len(h.blocks) || p < h.blocks[i].start) {
			b.end++
			return
		}
	}
	h.blocks = slices.Insert(h.blocks, i, &block{start: p, end: p + 1})
}

// after gives the index of the first block that begins after a position.
func (h *families) after(p int32) int {
	i, _ := slices.BinarySearchFunc(h.blocks, p+1, func(b *block, p int32) int { return int(b.start - p) })
	return i
}

// first gives the position of the first withheld root in a block, or none. On the way it unmarks roots that are no
// longer withheld.
func (h *families) first(b *block) int32 {
	for {
		p := h.ready.next(b.start, b.end)
		if p == none || h.tasks.list[h.roots[p]].state == Queued {
			b.start = max(p, b.start)
			return p
		}
		h.unmark(p)
	}
}

func (h *families) unmark(p int32) {
	h.ready.clear(p)
	h.nready--
}

// remove removes a block that has no roots left from the list, and from its owner's list.
func (h *families) remove(b *block) {
	is := func(o *block) bool { return o == b }
	h.blocks = slices.DeleteFunc(h.blocks, is)
	if b.owner != nil {
		b.owner.claims.blocks = slices.DeleteFunc(b.owner.claims.blocks, is)
	}
}

func (h *families) workerLeft(w *worker) {
	for _, b := range w.claims.blocks {
		b.owner = nil
	}
	w.claims = claims{}
	h.retryIdle = true
}

func (h *families) settle() {
	if len(h.idle) > 0 && (h.retryIdle || h.now-h.idleAt >= splitPause || h.workers.busy() == 0) {
		for _, w := range h.idle {
			if h.workers.byIndex[w.index] != nil {
				h.workers.markOpen(w)
			}
		}
		h.idle = h.idle[:0]
	}
	h.retryIdle, h.noSplit = false, false
	for h.nready > 0 {
		if h.overBudget() {
			h.forceOne()
			return
		}
		w := h.workers.leastFull(func(w *worker) bool { return h.admits(w) })
		if w == nil {
			return
		}
		if t := h.next(w); t != none {
			h.placement.assign(t, w)
		} else {
			h.idle = append(h.idle, w)
			h.idleAt = h.now
			h.workers.markFull(w)
		}
	}
}

// forceOne sends one root although the budget is used up, since nothing runs: the first in line, because the results
// that are held wait for it.
func (h *families) forceOne() {
	if h.workers.busy() > 0 {
		return
	}
	for len(h.blocks) > 0 {
		b := h.blocks[0]
		p := h.first(b)
		if p == none {
			h.remove(b)
			continue
		}
		w := b.owner
		if w == nil || h.workers.slots(w) <= 0 {
			w = h.workers.leastFull(nil)
		}
		if w != nil {
			h.unmark(p)
			h.placement.assign(h.roots[p], w)
		}
		return
	}
}

// admits tells whether one more root may go to a worker that has a slot. Slots beyond its threads hide the round
// trip to the scheduler. A worker that holds much does not use them, unless the cluster has held more before: then
// that costs nothing.
func (h *families) admits(w *worker) bool {
	n := len(w.procs) - w.long
	if n < w.threads || h.unlimited() {
		return true
	}
	if h.measures.all.n == 0 {
		return false
	}
	more := h.measures.mean()
	return float64(w.bytes)+float64(n+1)*more <= extraRooms*h.room(w) ||
		float64(h.copies.inMemory)+float64(h.tasks.count[Processing]+1)*more <= belowPeak*float64(h.copies.peak)
}

const (
	extraRooms = 2   // how many times its room a worker may hold to be sent more tasks than it has threads
	belowPeak  = 0.8 // the share of the peak up to which holding more costs nothing
)

// next takes the root that a worker should run next.
func (h *families) next(w *worker) int32 {
	for {
		if p := h.own(w); p != none {
			h.unmark(p)
			return h.roots[p]
		}
		if !h.claim(w) && !h.splitOff(w) {
			return none
		}
	}
}

// own gives the first root of a worker's own blocks.
func (h *families) own(w *worker) int32 {
	best := none
	for i := len(w.claims.blocks) - 1; i >= 0; i-- {
		b := w.claims.blocks[i]
		switch p := h.first(b); {
		case p == none:
			h.remove(b)
		case best == none || p < best:
			best = p
		}
	}
	return best
}

// maxMenu bounds how many families a worker chooses from.
const maxMenu = 64

// claim gives a worker a family that nobody owns: of the first in line the one whose partners it holds more of
// than any other worker does, or else the very first.
func (h *families) claim(w *worker) bool {
	var best *block
	most := int64(0)
	menu := min(len(h.workers.live)+1, maxMenu)
	for i := 0; i < len(h.blocks) && menu > 0; i++ {
		b := h.blocks[i]
		if b.owner != nil {
			continue
		}
		if h.first(b) == none {
			h.remove(b)
			i--
			continue
		}
		if !b.isFamily {
			if end := h.family(w, b); end < b.end {
				h.split(i, end)
			}
			b.isFamily = true
		}
		menu--
		n := h.affinity(w, b)
		if best == nil || n > most {
			best, most = b, max(n, 0)
		}
	}
	if best == nil {
		return false
	}
	h.give(best, w)
	return true
}

// affinity is how many bytes more a worker has than any other worker has of the results that a block's results will
// meet.
func (h *families) affinity(w *worker, b *block) int64 {
	for p := b.start; p < b.end; p++ {
		for _, t := range h.made.of(p) {
			if h.tasks.list[t].state.active() {
				h.countInputs(t)
			}
		}
	}
	own, other := int64(0), int64(0)
	for _, i := range h.who {
		if i == w.index {
			own = h.have[i]
		} else {
			other = max(other, h.have[i])
		}
		h.have[i] = 0
	}
	h.who = h.who[:0]
	return own - other
}

// countInputs adds what workers hold of a task's inputs.
func (h *families) countInputs(t int32) {
	if n := len(h.workers.byIndex) - len(h.have); n > 0 {
		h.have = append(h.have, make([]int64, n)...)
	}
	for _, d := range h.g.deps.of(t) {
		y := &h.tasks.list[d]
		for i := y.copies; i != none; i = h.copies.entries[i].next {
			at := h.copies.entries[i].worker
			if h.have[at] == 0 {
				h.who = append(h.who, at)
			}
			h.have[at] += y.bytes
		}
	}
}

func (h *families) give(b *block, w *worker) {
	b.owner, b.begin = w, b.start
	w.claims.blocks = append(w.claims.blocks, b)
}

// split makes two blocks of one. The second begins at p and has no owner.
func (h *families) split(i int, p int32) *block {
	b := h.blocks[i]
	rest := &block{start: p, end: b.end}
	b.end = p
	h.blocks = slices.Insert(h.blocks, i+1, rest)
	return rest
}
