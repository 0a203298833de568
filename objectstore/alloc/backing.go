package alloc

// Back says that a range has memory of its owner behind it now. Partial pages at either end count as backed. No
// part of the range may have memory of another owner.
func (a *Allocator) Back(r Owned) {
	lo, hi := r.Off&^(Page-1), min((r.End()+Page-1)&^(Page-1), a.limit)
	if lo >= hi {
		return
	}
	r.Range = Range{lo, hi - lo}
	s := a.state(r.Owner)
	before := s.backed.total
	s.backed.add(r.Range)
	a.backed += s.backed.total - before
	before = s.warm.total
	a.free.each(r.Range, s.warm.add)
	a.warm += s.warm.total - before
}

// Unback says that the memory behind an extent in use is unknown.
func (a *Allocator) Unback(b Block) {
	if s := a.sides[b.Owner]; s != nil && !b.Slab {
		a.carveBacked(s, b.Range())
	}
}

// Unbacked lists the parts of a block that need memory before they may be touched.
func (a *Allocator) Unbacked(b Block) []Range {
	lo := b.Off &^ (Page - 1)
	hi := (b.End() + Page - 1) &^ (Page - 1)
	var out []Range
	a.state(b.Owner).backed.gaps(Range{lo, hi - lo}, func(r Range) { out = append(out, r) })
	return out
}

// FreeUnbacked lists the free parts of a range that are not known to have memory of its owner.
func (a *Allocator) FreeUnbacked(r Owned) (out []Owned) {
	s := a.state(r.Owner)
	a.free.each(r.Range, func(p Range) {
		s.backed.gaps(p, func(g Range) { out = append(out, Owned{r.Owner, g}) })
	})
	return out
}

// ExtendToStep extends a range that is about to be backed to a multiple of step, as far as the space after it is free and
// has no memory: memory is reserved in steps, ahead of demand.
func (a *Allocator) ExtendToStep(r Range, step uint64) Range {
	end := min((r.End()+step-1)/step*step, a.limit)
	k, ok := a.free.at(r.End())
	if !ok || k.Off > r.End() {
		return r
	}
	end = min(end, k.End())
	for _, s := range a.sides {
		if w, ok := s.warm.at(r.End()); ok && w.Off < end {
			end = max(r.End(), w.Off)
		}
	}
	return Range{r.Off, end - r.Off}
}

// FindUnbacked is the lowest range of at most size bytes that is free and has no memory behind it.
func (a *Allocator) FindUnbacked(size uint64) (Range, bool) {
	k, ok := a.free.at(0)
	for ok {
		for at := k.Off; at < k.End(); {
			next, end := k.End(), at // the nearest warm range, and the end of those that at lies in
			for _, s := range a.sides {
				if w, ok := s.warm.at(at); ok && w.Off <= at {
					end = max(end, w.End())
				} else if ok {
					next = min(next, w.Off)
				}
			}
			if end == at {
				return Range{at, min(size, next-at)}, true
			}
			at = end
		}
		k, ok = a.free.at(k.End())
	}
	return Range{}, false
}

// Release picks warm memory to give back, at most most bytes, largest runs first, and keeps keep bytes warm. The
// returned ranges count as not backed from now on: the caller punches them.
func (a *Allocator) Release(keep, most uint64) []Owned {
	var out []Owned
	for most >= Page && a.warm >= keep+Page {
		var s *ownerState
		var best key
		for _, o := range a.sides {
			if k, ok := o.warm.bySize.floor(^uint64(0), ^uint64(0)); ok && (s == nil || k.a > best.a || k.a == best.a && k.b > best.b) {
				s, best = o, k
			}
		}
		n := min(best.a, most, a.warm-keep) &^ (Page - 1)
		r := Range{best.b + best.a - n, n} // the upper end: low offsets are reused first
		a.carveWarm(s, r)
		a.carveBacked(s, r)
		out = append(out, Owned{s.owner, r})
		most -= n
	}
	return out
}
