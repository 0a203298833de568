package alloc

// Range is Size bytes from Off.
type Range struct{ Off, Size uint64 }

// End is the first byte after the range.
func (r Range) End() uint64 { return r.Off + r.Size }

// runs is a set of byte positions, kept as disjoint maximal ranges, ordered by offset, to coalesce and carve, and
// by size, for best fit.
type runs struct {
	byOff  tree // key: offset, size
	bySize tree // key: size, offset
	total  uint64
}

func (s *runs) insert(r Range) {
	s.byOff.put(r.Off, r.Size)
	s.bySize.put(r.Size, r.Off)
	s.total += r.Size
}

func (s *runs) delete(r Range) {
	s.byOff.remove(r.Off, r.Size)
	s.bySize.remove(r.Size, r.Off)
	s.total -= r.Size
}

// at is the run that contains off, or else the first one after it.
func (s *runs) at(off uint64) (Range, bool) {
	if k, ok := s.byOff.floor(off, ^uint64(0)); ok && k.a+k.b > off {
		return Range{k.a, k.b}, true
	}
	k, ok := s.byOff.ceil(off, 0)
	return Range{k.a, k.b}, ok
}

// add joins the range to the set; parts that are in it already stay.
func (s *runs) add(r Range) {
	if r.Size == 0 {
		return
	}
	lo, hi := r.Off, r.End()
	if k, ok := s.byOff.floor(lo, ^uint64(0)); ok && k.a+k.b >= lo {
		lo, hi = k.a, max(hi, k.a+k.b)
		s.delete(Range{k.a, k.b})
	}
	for {
		k, ok := s.byOff.ceil(lo, 0)
		if !ok || k.a > hi {
			break
		}
		hi = max(hi, k.a+k.b)
		s.delete(Range{k.a, k.b})
	}
	s.insert(Range{lo, hi - lo})
}

// carve removes the range from the set; parts that are not in it are ignored.
func (s *runs) carve(r Range) {
	for r.Size > 0 {
		k, ok := s.at(r.Off)
		if !ok || k.Off >= r.End() {
			return
		}
		s.delete(k)
		if k.Off < r.Off {
			s.insert(Range{k.Off, r.Off - k.Off})
		}
		if k.End() > r.End() {
			s.insert(Range{r.End(), k.End() - r.End()})
		}
		if k.End() >= r.End() {
			return
		}
		r = Range{k.End(), r.End() - k.End()}
	}
}

// contains tells whether all of r is in the set.
func (s *runs) contains(r Range) bool {
	k, ok := s.at(r.Off)
	return ok && k.Off <= r.Off && k.End() >= r.End()
}

// disjoint tells whether no part of r is in the set.
func (s *runs) disjoint(r Range) bool {
	k, ok := s.at(r.Off)
	return !ok || k.Off >= r.End()
}

// each calls f for the parts of r that are in the set, in order.
func (s *runs) each(r Range, f func(Range)) {
	for r.Size > 0 {
		k, ok := s.at(r.Off)
		if !ok || k.Off >= r.End() {
			return
		}
		lo, hi := max(k.Off, r.Off), min(k.End(), r.End())
		f(Range{lo, hi - lo})
		r = Range{hi, r.End() - hi}
	}
}

// gaps calls f for the parts of r that are not in the set, in order.
func (s *runs) gaps(r Range, f func(Range)) {
	next := r.Off
	s.each(r, func(p Range) {
		if p.Off > next {
			f(Range{next, p.Off - next})
		}
		next = p.End()
	})
	if next < r.End() {
		f(Range{next, r.End() - next})
	}
}

// best is the smallest run of at least size bytes, the lowest of equals.
func (s *runs) best(size uint64) (Range, bool) {
	k, ok := s.bySize.ceil(size, 0)
	return Range{k.b, k.a}, ok
}

// largest is the size of the largest run.
func (s *runs) largest() uint64 {
	k, ok := s.bySize.floor(^uint64(0), ^uint64(0))
	if !ok {
		return 0
	}
	return k.a
}

// bestAligned is the lowest range of size bytes at a multiple of align (a power of two) in the smallest run that
// has one. It skips runs that are too small only because of alignment.
func (s *runs) bestAligned(size, align uint64) (Range, bool) {
	want := size
	for range 8 { // the few best fits may happen to be aligned
		k, ok := s.bySize.ceil(want, 0)
		if !ok {
			return Range{}, false
		}
		off := (k.b + align - 1) &^ (align - 1)
		if off+size <= k.b+k.a {
			return Range{off, size}, true
		}
		want = k.a + 1
	}
	r, ok := s.best(size + align - 1) // there is an aligned place in any of these
	if !ok {
		return Range{}, false
	}
	return Range{(r.Off + align - 1) &^ (align - 1), size}, true
}
