package alloc

// Withhold takes at most n bytes more out of use, whole pages of what is free, the highest first. What it returns has
// memory behind it that is not counted as backed from now on: the caller punches it out.
func (a *Allocator) Withhold(n uint64) []Range {
	var out []Range
	for n >= Page {
		k, ok := a.free.byOff.floor(^uint64(0), ^uint64(0))
		if !ok {
			break
		}
		size := min(k.b, n) &^ (Page - 1)
		r := Range{k.a + k.b - size, size}
		a.backed.each(r, func(b Range) { out = append(out, b) })
		a.take(r)
		a.backed.carve(r)
		a.withheld += size
		n -= size
	}
	a.check()
	return out
}

// Withheld is the number of bytes that Withhold has taken.
func (a *Allocator) Withheld() uint64 { return a.withheld }
