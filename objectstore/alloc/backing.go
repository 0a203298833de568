package alloc

// Back says that a range has memory behind it now. Whole pages count; parts of pages at
// either end are taken as backed with the page.
func (a *Allocator) Back(r Range) {
	lo, hi := r.Off&^(Page-1), min((r.End()+Page-1)&^(Page-1), a.limit)
	if lo >= hi {
		return
	}
	r = Range{lo, hi - lo}
	a.backed.add(r)
	a.free.each(r, a.warm.add)
}

// Unback says that nothing is known of the memory behind an extent that is in use.
func (a *Allocator) Unback(b Block) {
	if !b.Slab {
		a.backed.carve(b.Range())
	}
}

// Unbacked lists the parts of a block that need memory before they may be touched.
func (a *Allocator) Unbacked(b Block) []Range {
	lo := b.Off &^ (Page - 1)
	hi := (b.End() + Page - 1) &^ (Page - 1)
	var out []Range
	a.backed.gaps(Range{lo, hi - lo}, func(r Range) { out = append(out, r) })
	return out
}

// Ahead extends a range that is about to be backed to a multiple of step, as far as the
// space behind it is not backed either: memory is reserved in steps, ahead of demand.
func (a *Allocator) Ahead(r Range, step uint64) Range {
	end := min((r.End()+step-1)/step*step, a.limit)
	if k, ok := a.backed.at(r.Off); ok && k.Off < end {
		end = max(r.End(), k.Off)
	}
	return Range{r.Off, end - r.Off}
}

// Cold is the lowest stretch of at most size bytes that is neither used nor backed.
func (a *Allocator) Cold(size uint64) (Range, bool) {
	var out Range
	k, ok := a.free.at(0)
	for ok && out.Size == 0 {
		a.backed.gaps(k, func(r Range) {
			if out.Size == 0 {
				out = Range{r.Off, min(size, r.Size)}
			}
		})
		k, ok = a.free.at(k.End())
	}
	return out, out.Size > 0
}

// Release picks warm memory to give back, at most most bytes, largest runs first, and keeps keep
// bytes warm. What it returns is not backed from now on: the caller punches it out.
func (a *Allocator) Release(keep, most uint64) []Range {
	var out []Range
	for most >= Page && a.warm.total >= keep+Page {
		k, ok := a.warm.bySize.floor(^uint64(0), ^uint64(0))
		if !ok {
			break
		}
		n := min(k.a, most, a.warm.total-keep) &^ (Page - 1)
		r := Range{k.b + k.a - n, n} // the upper end: low offsets are reused first
		a.warm.carve(r)
		a.backed.carve(r)
		out = append(out, r)
		most -= n
	}
	return out
}
