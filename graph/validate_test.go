package graph

import (
	"fmt"
	"slices"
)

// validate computes every total of the core anew and compares.
func (c *Core) validate() error {
	var count [numStates]int
	var bytes int64
	work := make([]int64, len(c.workers.byIndex))
	held := make([]int64, len(c.workers.byIndex))
	nheld := make([]int, len(c.workers.byIndex))
	procs := make([]int, len(c.workers.byIndex))
	long := make([]int, len(c.workers.byIndex))
	sending := make([]int, len(c.workers.byIndex))
	left := 0
	for i := range c.tasks.list {
		t := int32(i)
		x := &c.tasks.list[t]
		key := c.g.Key(t)
		count[x.state]++
		users, alive := int32(0), int32(0)
		for _, u := range c.g.up.of(t) {
			if c.tasks.list[u].state.active() {
				users++
			}
			if c.tasks.list[u].state != Forgotten {
				alive++
			}
		}
		if users != x.users || alive != x.alive {
			return fmt.Errorf("%s: %d users and %d alive, counted %d and %d", key, users, alive, x.users, x.alive)
		}
		waits := int32(0)
		for _, d := range c.g.deps.of(t) {
			if c.tasks.list[d].state != Memory {
				waits++
			}
		}
		if x.state.active() {
			if waits != x.waits {
				return fmt.Errorf("%s is %v: %d inputs are missing, counted %d", key, x.state, waits, x.waits)
			}
			if (x.state == Waiting) != (waits > 0) && c.started {
				return fmt.Errorf("%s is %v with %d inputs missing", key, x.state, waits)
			}
			if users == 0 && x.flags&isWanted == 0 {
				return fmt.Errorf("%s is %v and nobody needs it", key, x.state)
			}
			if x.flags&isWanted != 0 {
				left++
			}
		}
		if (x.state == Processing) != (x.worker != none) {
			return fmt.Errorf("%s is %v on worker %d", key, x.state, x.worker)
		}
		if x.state == Processing {
			w := c.workers.byIndex[x.worker]
			if w == nil || w.procs[x.at] != t {
				return fmt.Errorf("%s is misplaced", key)
			}
			work[w.index] += x.est
			procs[w.index]++
			if x.flags&isLong != 0 {
				long[w.index]++
			}
			for _, d := range c.g.deps.of(t) {
				if c.copies.copyAt(d, w.index) == none {
					return fmt.Errorf("%s is processed where %s is not", key, c.g.Key(d))
				}
			}
		}
		if x.state == NoWorker && (int(x.at) >= len(c.stranded) || c.stranded[x.at] != t) {
			return fmt.Errorf("%s is stranded and not in the list", key)
		}
		there := 0
		for e := x.copies; e != none; e = c.copies.entries[e].next {
			r := c.copies.entries[e]
			w := c.workers.byIndex[r.worker]
			if w == nil {
				return fmt.Errorf("%s has a copy on a worker that left", key)
			}
			held[r.worker] += x.bytes
			nheld[r.worker]++
			bytes += x.bytes
			if !slices.Contains(w.holds, t) {
				return fmt.Errorf("%s is not in its worker's list", key)
			}
			if r.from == none {
				there++
			} else if c.workers.byIndex[r.from] == nil {
				return fmt.Errorf("%s comes from a worker that left", key)
			} else {
				sending[r.from]++
			}
		}
		if (x.state == Memory) != (there > 0) || x.state != Memory && x.copies != none {
			return fmt.Errorf("%s is %v with %d copies", key, x.state, there)
		}
		if x.state == Memory && users == 0 && x.flags&isWanted == 0 && c.started {
			return fmt.Errorf("%s is in memory and nobody needs it", key)
		}
		if x.state == Erred && x.blame == none {
			return fmt.Errorf("%s failed for nothing", key)
		}
	}
	if count != c.count || left != c.left || bytes != c.inMemory {
		return fmt.Errorf("states %v, left %d, bytes %d; counted %v, %d, %d", count, left, bytes, c.count, c.left, c.inMemory)
	}
	for _, w := range c.live {
		i := w.index
		if work[i] != w.work || held[i] != w.bytes || nheld[i] != w.nholds || procs[i] != len(w.procs) || long[i] != w.long || sending[i] != w.sending {
			return fmt.Errorf("worker %d: work %d bytes %d holds %d procs %d long %d sending %d; counted %d %d %d %d %d %d", w.id,
				work[i], held[i], nheld[i], procs[i], long[i], sending[i], w.work, w.bytes, w.nholds, len(w.procs), w.long, w.sending)
		}
	}
	return c.validateQueue()
}

// count counts the members in [from, to).
func (b bitset) count(from, to int32) int {
	n := 0
	for i := b.next(from, to); i != none; i = b.next(i+1, to) {
		n++
	}
	return n
}

// validateQueue checks that no root is withheld that nobody would ever send.
func (c *Core) validateQueue() error {
	h, ok := c.queue.(*families)
	if !ok {
		return nil
	}
	marked := h.ready.count(0, int32(len(h.roots)))
	if marked != h.nready {
		return fmt.Errorf("%d roots are marked, counted %d", marked, h.nready)
	}
	n := 0
	for i, b := range h.blocks {
		if i > 0 && h.blocks[i-1].end > b.start || b.end < b.start {
			return fmt.Errorf("block %d overlaps", i)
		}
		if b.owner != nil && (c.workers.byIndex[b.owner.index] != b.owner || !slices.Contains(b.owner.claims.blocks, b)) {
			return fmt.Errorf("block %d is of a worker that does not know it", i)
		}
		n += h.ready.count(b.start, b.end)
	}
	if n != marked {
		return fmt.Errorf("%d roots are marked, %d in blocks", marked, n)
	}
	for i := range c.tasks.list {
		if t := int32(i); c.tasks.list[t].state == Queued && !h.ready.has(h.at[t]) {
			return fmt.Errorf("%s is withheld and not marked", c.g.Key(t))
		}
	}
	return nil
}
