package alloc

import (
	"cmp"
	"slices"
)

// Withhold takes n bytes, in whole pages, out of use: the highest that are free, so that the rest stays in one piece unless something above
// is in use. It takes less if less is free; when it is called again after blocks were freed, it moves up and takes the rest. The returned
// ranges have memory that no longer counts as backed: the caller punches them.
func (a *Allocator) Withhold(n uint64) []Owned {
	n &^= Page - 1
	if a.withheld.total == n && !a.movesUp() || a.withheld.total <= n && a.free.total == 0 {
		return nil
	}
	a.withheld.each(Range{0, a.limit}, a.free.add)
	a.withheld = runs{}
	var out []Owned
	for n > 0 {
		k, ok := a.free.byOff.floor(^uint64(0), ^uint64(0))
		if !ok {
			break
		}
		size := min(k.b, n)
		r := Range{k.a + k.b - size, size}
		a.free.carve(r)
		for _, s := range a.sides {
			s.warm.each(r, func(p Range) { out = append(out, Owned{s.owner, p}) })
			a.carveWarm(s, r)
			a.carveBacked(s, r)
		}
		a.withheld.add(r)
		n -= size
	}
	slices.SortFunc(out, func(x, y Owned) int { return cmp.Compare(x.Off, y.Off) })
	a.check()
	return out
}

// movesUp tells whether there is free space above some that is withheld.
func (a *Allocator) movesUp() bool {
	low, ok := a.withheld.at(0)
	if !ok {
		return false
	}
	k, ok := a.free.byOff.floor(^uint64(0), ^uint64(0))
	return ok && k.a > low.Off
}

// Withheld is the number of bytes that Withhold has taken.
func (a *Allocator) Withheld() uint64 { return a.withheld.total }
