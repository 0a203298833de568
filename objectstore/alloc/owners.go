package alloc

import (
	"cmp"
	"slices"
)

// ownerState is the allocator's state of one owner.
type ownerState struct {
	owner  Owner
	warm   runs // free ranges with memory of the owner behind them
	backed runs // ranges with memory of the owner, free or not
	room   []*slab
	used   uint64 // sum of its blocks
}

func (a *Allocator) state(o Owner) *ownerState {
	s := a.sides[o]
	if s == nil {
		s = &ownerState{owner: o, room: make([]*slab, len(classes))}
		a.sides[o] = s
	}
	return s
}

// UsedBy is the sum of the sizes of an owner's blocks.
func (a *Allocator) UsedBy(o Owner) uint64 {
	if s := a.sides[o]; s != nil {
		return s.used
	}
	return 0
}

// Owners lists the owners that have blocks.
func (a *Allocator) Owners() []Owner {
	var out []Owner
	for o, s := range a.sides {
		if s.used > 0 {
			out = append(out, o)
		}
	}
	slices.Sort(out)
	return out
}

// Forget drops an owner without blocks; its memory, if there is any, goes with its file.
func (a *Allocator) Forget(o Owner) {
	if s := a.sides[o]; s != nil && s.used == 0 {
		a.warm -= s.warm.total
		a.backed -= s.backed.total
		delete(a.sides, o)
	}
}

// Taken lists warm memory of other owners in the places of blocks that were cut since the last call. It no longer counts, and the
// caller punches it before the blocks get memory of their own.
func (a *Allocator) Taken() []Owned {
	t := a.taken
	a.taken = nil
	slices.SortFunc(t, func(x, y Owned) int { return cmp.Compare(x.Off, y.Off) })
	return t
}

// take makes a free range the owner's.
func (a *Allocator) take(s *ownerState, r Range) {
	a.free.carve(r)
	if a.warm == 0 {
		return
	}
	a.carveWarm(s, r)
	if a.warm == 0 {
		return
	}
	for _, o := range a.sides {
		if o != s && o.warm.total > 0 {
			o.warm.each(r, func(p Range) { a.taken = append(a.taken, Owned{o.owner, p}) })
			a.carveWarm(o, r)
			a.carveBacked(o, r)
		}
	}
}

// give makes a range free again; its backed parts become warm.
func (a *Allocator) give(s *ownerState, r Range) {
	a.free.add(r)
	before := s.warm.total
	s.backed.each(r, s.warm.add)
	a.warm += s.warm.total - before
}

func (a *Allocator) carveWarm(s *ownerState, r Range) {
	before := s.warm.total
	s.warm.carve(r)
	a.warm -= before - s.warm.total
}

func (a *Allocator) carveBacked(s *ownerState, r Range) {
	before := s.backed.total
	s.backed.carve(r)
	a.backed -= before - s.backed.total
}

func (s *ownerState) link(l *slab) {
	l.next = s.room[l.class]
	if l.next != nil {
		l.next.prev = l
	}
	s.room[l.class] = l
}

func (s *ownerState) unlink(l *slab) {
	switch {
	case l.prev != nil:
		l.prev.next = l.next
	case s.room[l.class] == l:
		s.room[l.class] = l.next
	}
	if l.next != nil {
		l.next.prev = l.prev
	}
	l.prev, l.next = nil, nil
}

// Span is the range that belongs to the owner because of a block: for a block of a slab it is the slab.
func (a *Allocator) Span(b Block) Range {
	if !b.Slab {
		return b.Range()
	}
	n := slabBytes(classOf[b.Size/Align])
	return Range{b.Off &^ (n - 1), n}
}
