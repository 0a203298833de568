package alloc

import (
	"errors"
	"fmt"
)

// ErrBadBlock is wrapped when a block to free, shrink or restore is not one that was
// handed out, or overlaps one that is.
var ErrBadBlock = errors.New("not a block of this allocator")

// Block is what was handed out: Size is what it takes in the segment, at least what was
// asked. Slab tells how it was cut, which its owner must give back unchanged.
type Block struct {
	Off, Size uint64
	Slab      bool
}

// Range is the block's place.
func (b Block) Range() Range { return Range{b.Off, b.Size} }

// Allocator hands out blocks of [0, limit). All sizes in bytes.
type Allocator struct {
	limit  uint64
	free   runs // in no slab and no extent
	warm   runs // free and backed
	backed runs // with memory behind it, free or not
	slabs  map[uint64]*slab
	room   []*slab // by class: slabs with a free block
	used   uint64  // sum of blocks handed out
	slack  uint64  // free bytes within slabs

	withheld runs // neither free nor handed out
}

// New makes an allocator of limit bytes, none of them backed. The limit is rounded down
// to whole pages.
func New(limit uint64) *Allocator {
	a := &Allocator{limit: limit &^ (Page - 1), slabs: make(map[uint64]*slab), room: make([]*slab, len(classes))}
	a.free.add(Range{0, a.limit})
	return a
}

// Limit is the segment's size.
func (a *Allocator) Limit() uint64 { return a.limit }

// Used is the sum of the sizes of all blocks handed out.
func (a *Allocator) Used() uint64 { return a.used }

// Held is Used and the unused parts of slabs: all that an extent cannot be cut from.
func (a *Allocator) Held() uint64 { return a.used + a.slack }

// Largest is the longest extent that could be handed out.
func (a *Allocator) Largest() uint64 { return a.free.largest() }

// Warm is the number of bytes that are free and backed.
func (a *Allocator) Warm() uint64 { return a.warm.total }

// Backed is the number of bytes that have memory behind them.
func (a *Allocator) Backed() uint64 { return a.backed.total }

// Rounded is the size of the block that would hold size bytes.
func Rounded(size uint64) uint64 {
	if size < Large {
		return uint64(classes[classOf[(size+Align-1)/Align]])
	}
	return (size + Page - 1) &^ (Page - 1)
}

// Alloc hands out a block of at least size bytes, or false if no free part is long enough. With
// warmOnly it takes none that is not backed.
func (a *Allocator) Alloc(size uint64, warmOnly bool) (Block, bool) {
	if size > a.limit {
		return Block{}, false
	}
	if size < Large {
		if b, ok := a.allocSmall(classOf[(size+Align-1)/Align], warmOnly); ok {
			return b, true
		}
	}
	size = max(Page, (size+Page-1)&^(Page-1))
	r, ok := a.warm.best(size)
	if !ok && !warmOnly {
		r, ok = a.free.best(size)
	}
	if !ok {
		return Block{}, false
	}
	r.Size = size
	a.take(r)
	a.used += size
	a.check()
	return Block{Off: r.Off, Size: size}, true
}

func (a *Allocator) allocSmall(class uint8, warmOnly bool) (Block, bool) {
	s := a.room[class]
	for s != nil && warmOnly && !a.backed.contains(Range{s.off, slabBytes(class)}) {
		s = s.next
	}
	if s == nil {
		n := slabBytes(class)
		r, ok := a.warm.bestAligned(n, n)
		if !ok && !warmOnly {
			r, ok = a.free.bestAligned(n, n)
		}
		if !ok {
			return Block{}, false
		}
		s = a.addSlab(r.Off, class)
	}
	off := s.take()
	if s.free == 0 {
		a.unlink(s)
	}
	c := uint64(classes[class])
	a.used, a.slack = a.used+c, a.slack-c
	a.check()
	return Block{Off: off, Size: c, Slab: true}, true
}

func (a *Allocator) take(r Range) {
	a.free.carve(r)
	a.warm.carve(r)
}

// give makes a range free again; its backed parts are warm.
func (a *Allocator) give(r Range) {
	a.free.add(r)
	a.backed.each(r, a.warm.add)
}

func (a *Allocator) addSlab(off uint64, class uint8) *slab {
	s := newSlab(off, class)
	a.take(Range{off, slabBytes(class)})
	for g := off; g < off+slabBytes(class); g += granule {
		a.slabs[g] = s
	}
	a.slack += slabBytes(class)
	a.link(s)
	return s
}

func (a *Allocator) dropSlab(s *slab) {
	n := slabBytes(s.class)
	for g := s.off; g < s.off+n; g += granule {
		delete(a.slabs, g)
	}
	a.slack -= n
	a.unlink(s)
	a.give(Range{s.off, n})
}

func (a *Allocator) link(s *slab) {
	s.next = a.room[s.class]
	if s.next != nil {
		s.next.prev = s
	}
	a.room[s.class] = s
}

func (a *Allocator) unlink(s *slab) {
	switch {
	case s.prev != nil:
		s.prev.next = s.next
	case a.room[s.class] == s:
		a.room[s.class] = s.next
	}
	if s.next != nil {
		s.next.prev = s.prev
	}
	s.prev, s.next = nil, nil
}

// Free takes a block back. An empty slab becomes free space at once.
func (a *Allocator) Free(b Block) error {
	if b.Slab {
		return a.freeSmall(b)
	}
	if b.Size == 0 || b.Size%Page != 0 || b.Off%Page != 0 || b.End() > a.limit || b.End() < b.Off || !a.free.disjoint(b.Range()) || b.Size > a.used {
		return fmt.Errorf("free of extent [%d, +%d): %w", b.Off, b.Size, ErrBadBlock)
	}
	a.used -= b.Size
	a.give(b.Range())
	return nil
}

// End is the first byte after the block.
func (b Block) End() uint64 { return b.Off + b.Size }

func (a *Allocator) freeSmall(b Block) error {
	s := a.slabs[b.Off&^(granule-1)]
	if s == nil || uint64(classes[s.class]) != b.Size {
		return fmt.Errorf("free of small block [%d, +%d): %w", b.Off, b.Size, ErrBadBlock)
	}
	i := s.index(b.Off)
	if i < 0 || !s.has(i) {
		return fmt.Errorf("free of small block [%d, +%d): %w", b.Off, b.Size, ErrBadBlock)
	}
	if s.free == 0 {
		a.link(s)
	}
	s.clear(i)
	a.used, a.slack = a.used-b.Size, a.slack+b.Size
	if s.free == s.n {
		a.dropSlab(s)
	}
	return nil
}

// Shrink gives back the tail of an extent beyond size bytes; blocks of slabs stay as they are.
func (a *Allocator) Shrink(b Block, size uint64) (Block, error) {
	keep := max(Page, (size+Page-1)&^(Page-1))
	if b.Slab || keep >= b.Size {
		return b, nil
	}
	if err := a.Free(Block{Off: b.Off + keep, Size: b.Size - keep}); err != nil {
		return b, err
	}
	b.Size = keep
	return b, nil
}

// Restore takes a block that an earlier allocator of the same limit had handed out. The
// block's memory counts as backed.
func (a *Allocator) Restore(b Block) error {
	if !b.Slab {
		if b.Size == 0 || b.Size%Page != 0 || b.Off%Page != 0 || b.End() < b.Off || !a.free.contains(b.Range()) {
			return fmt.Errorf("restore of extent [%d, +%d): %w", b.Off, b.Size, ErrBadBlock)
		}
		a.Back(b.Range())
		a.take(b.Range())
		a.used += b.Size
		return nil
	}
	if b.Size == 0 || b.Size > Large || Rounded(b.Size-1) != b.Size {
		return fmt.Errorf("restore of small block [%d, +%d): no such size: %w", b.Off, b.Size, ErrBadBlock)
	}
	class := classOf[b.Size/Align]
	n := slabBytes(class)
	s := a.slabs[b.Off&^(granule-1)]
	if s == nil {
		r := Range{b.Off &^ (n - 1), n}
		if !a.free.contains(r) {
			return fmt.Errorf("restore of small block [%d, +%d): its slab is taken: %w", b.Off, b.Size, ErrBadBlock)
		}
		s = a.addSlab(r.Off, class)
	}
	i := s.index(b.Off)
	if s.class != class || i < 0 || s.has(i) {
		if s.free == s.n {
			a.dropSlab(s)
		}
		return fmt.Errorf("restore of small block [%d, +%d): %w", b.Off, b.Size, ErrBadBlock)
	}
	s.set(i)
	if s.free == 0 {
		a.unlink(s)
	}
	a.used, a.slack = a.used+b.Size, a.slack-b.Size
	a.Back(b.Range())
	return nil
}

// check holds the one promise that no caller may break.
func (a *Allocator) check() {
	if a.used > a.limit || a.used+a.slack+a.withheld.total+a.free.total != a.limit {
		panic(fmt.Sprintf("allocator: %d used, %d in slabs, %d withheld, %d free of a limit of %d", a.used, a.slack, a.withheld.total, a.free.total, a.limit))
	}
}
