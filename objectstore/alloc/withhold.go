package alloc

import (
	"cmp"
	"slices"
)

// Withhold takes at most n bytes more out of use, whole pages of what is free, the highest first. What it returns has
// memory behind it that is not counted as backed from now on: the caller punches it out.
func (a *Allocator) Withhold(n uint64) []Owned {
	var out []Owned
	for n >= Page {
		k, ok := a.free.byOff.floor(^uint64(0), ^uint64(0))
		if !ok {
			break
		}
		size := min(k.b, n) &^ (Page - 1)
		r := Range{k.a + k.b - size, size}
		a.free.carve(r)
		for _, s := range a.sides {
			s.warm.each(r, func(p Range) { out = append(out, Owned{s.owner, p}) })
			a.carveWarm(s, r)
			a.carveBacked(s, r)
		}
		a.withheld += size
		n -= size
	}
	slices.SortFunc(out, func(x, y Owned) int { return cmp.Compare(x.Off, y.Off) })
	a.check()
	return out
}

// Withheld is the number of bytes that Withhold has taken.
func (a *Allocator) Withheld() uint64 { return a.withheld }
