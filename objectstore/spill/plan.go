package spill

import "mobula/objectstore/spill/format"

// Fuse cuts items, in order, into files of at least least bytes and at most most objects. A short rest is added to
// the last file if that has room.
func Fuse(items []Item, least uint64, most int) [][]Item {
	var out [][]Item
	from, bytes := 0, uint64(0)
	for i := range items {
		bytes += items[i].Len()
		if bytes >= least || i+1-from >= most {
			out = append(out, items[from:i+1])
			from, bytes = i+1, 0
		}
	}
	if rest := items[from:]; len(rest) > 0 {
		if n := len(out); n > 0 && len(out[n-1])+len(rest) <= most {
			start := from - len(out[n-1])
			out[n-1] = items[start:]
		} else {
			out = append(out, rest)
		}
	}
	return out
}

// share is the router's state of one target.
type share struct {
	health   Health
	assigned uint64 // bytes since Open, without refused ones
	waiting  uint64 // of assigned, not yet written
}

// lagFiles is by how many files of MinFileBytes a target's queue may exceed the shortest before speed goes before
// the balance of bytes.
const lagFiles = 4

// Router chooses the target of each file: the healthy one with the fewest bytes, so that equal disks fill equally,
// unless its queue is much longer than the others'.
type Router struct {
	targets []share
	lag     uint64
}

// NewRouter makes a router for that many targets, all healthy, whose files have at least least bytes.
func NewRouter(targets int, least uint64) *Router {
	return &Router{targets: make([]share, targets), lag: lagFiles * least}
}

// Pick assigns size bytes to a target that is not in tried; ok is false if there is none.
func (r *Router) Pick(size uint64, tried map[uint16]error) (target uint16, ok bool) {
	shortest := ^uint64(0)
	for i := range r.targets {
		if t := &r.targets[i]; t.health == Healthy {
			shortest = min(shortest, t.waiting)
		}
	}
	best := -1
	for i := range r.targets {
		if _, no := tried[uint16(i)]; no {
			continue
		}
		if best < 0 || r.before(i, best, shortest) {
			best = i
		}
	}
	if best < 0 {
		return 0, false
	}
	r.targets[best].assigned += size
	r.targets[best].waiting += size
	return uint16(best), true
}

// before orders targets: the healthy first, then those that keep up, then by bytes.
func (r *Router) before(i, j int, shortest uint64) bool {
	a, b := &r.targets[i], &r.targets[j]
	if a.health != b.health {
		return a.health < b.health
	}
	if a.health == Healthy {
		slowA, slowB := a.waiting > shortest+r.lag, b.waiting > shortest+r.lag
		if slowA != slowB {
			return slowB
		}
	}
	return a.assigned < b.assigned
}

// Settled ends an assignment; one that was refused does not count.
func (r *Router) Settled(target uint16, size uint64, written bool) {
	t := &r.targets[target]
	t.waiting -= size
	if !written {
		t.assigned -= size
	}
}

// Turned notes a target's health. A target that comes back starts level with the others, so that it does not get
// every write until it has caught up.
func (r *Router) Turned(target uint16, to Health) {
	t := &r.targets[target]
	if t.health != Healthy && to == Healthy {
		most := t.assigned
		for i := range r.targets {
			if i != int(target) && r.targets[i].health == Healthy {
				most = max(most, r.targets[i].assigned)
			}
		}
		t.assigned = most
	}
	t.health = to
}

// Target gives a target's health and how many bytes of files were given to it, without refused ones.
func (r *Router) Target(n int) (h Health, assigned uint64) {
	return r.targets[n].health, r.targets[n].assigned
}

// FileBytes is the length of a file of these items.
func FileBytes(items []Item) uint64 {
	_, n := format.Sizes(items)
	return n
}
