package alloc

import (
	"errors"
	"fmt"
)

// ErrBadBlock is wrapped when a block to free or shrink was not handed out, or one to restore overlaps one that
// is.
var ErrBadBlock = errors.New("not a block of this allocator")

// Owner says in whose memory a block lies: each owner has a file of its own, with room for the whole limit.
type Owner uint64

// Block is a range that was handed out. Size is what it takes of the limit, at least the size asked for. Slab tells how
// it was cut; whoever has the block must give it back unchanged. No two blocks overlap, whatever their owners.
type Block struct {
	Off, Size uint64
	Slab      bool
	Owner     Owner
}

// Range is the block's place.
func (b Block) Range() Range { return Range{b.Off, b.Size} }

// Allocator hands out blocks of [0, limit). All sizes in bytes.
type Allocator struct {
	limit  uint64
	free   runs // ranges in no slab and no extent
	sides  map[Owner]*ownerState
	slabs  map[uint64]*slab
	used   uint64  // sum of blocks handed out
	slack  uint64  // free bytes within slabs
	warm   uint64  // sum over the sides
	backed uint64  // sum over the sides
	taken  []Owned // see Taken

	withheld runs // neither free nor handed out
}

// Owned is a range of an owner's memory.
type Owned struct {
	Owner Owner
	Range
}

// New makes an allocator of limit bytes, none of them backed. The limit is rounded down
// to whole pages.
func New(limit uint64) *Allocator {
	a := &Allocator{limit: limit &^ (Page - 1), slabs: make(map[uint64]*slab), sides: make(map[Owner]*ownerState)}
	a.free.add(Range{0, a.limit})
	return a
}

// Limit is the segment's size.
func (a *Allocator) Limit() uint64 { return a.limit }

// Used is the sum of the sizes of all blocks handed out.
func (a *Allocator) Used() uint64 { return a.used }

// Held is Used plus the unused parts of slabs: everything that an extent cannot be cut from.
func (a *Allocator) Held() uint64 { return a.used + a.slack }

// Largest is the longest extent that could be handed out.
func (a *Allocator) Largest() uint64 { return a.free.largest() }

// Warm is the number of bytes that are free and backed.
func (a *Allocator) Warm() uint64 { return a.warm }

// Backed is the number of bytes that have memory behind them.
func (a *Allocator) Backed() uint64 { return a.backed }

// Rounded is the size of a block for size bytes.
func Rounded(size uint64) uint64 {
	if size < Large {
		return uint64(classes[classOf[(size+Align-1)/Align]])
	}
	return (size + Page - 1) &^ (Page - 1)
}

// Alloc hands out a block of at least size bytes, or false if no free range is long enough. With warmOnly it takes
// only backed memory. See Taken.
func (a *Allocator) Alloc(o Owner, size uint64, warmOnly bool) (Block, bool) {
	if size > a.limit {
		return Block{}, false
	}
	s := a.state(o)
	if size < Large {
		if b, ok := a.allocSmall(s, classOf[(size+Align-1)/Align], warmOnly); ok {
			return b, true
		}
	}
	return a.allocPages(s, size, warmOnly)
}

func (a *Allocator) allocPages(s *ownerState, size uint64, warmOnly bool) (Block, bool) {
	size = max(Page, (size+Page-1)&^(Page-1))
	r, ok := s.warm.best(size)
	if !ok && !warmOnly {
		r, ok = a.free.best(size)
	}
	if !ok {
		return Block{}, false
	}
	r.Size = size
	a.take(s, r)
	a.used += size
	s.used += size
	a.check()
	return Block{Off: r.Off, Size: size, Owner: s.owner}, true
}

func (a *Allocator) allocSmall(s *ownerState, class uint8, warmOnly bool) (Block, bool) {
	l := s.room[class]
	for l != nil && warmOnly && !s.backed.contains(Range{l.off, slabBytes(class)}) {
		l = l.next
	}
	if l == nil {
		n := slabBytes(class)
		r, ok := s.warm.bestAligned(n, n)
		if !ok && !warmOnly {
			r, ok = a.free.bestAligned(n, n)
		}
		if !ok {
			return Block{}, false
		}
		l = a.addSlab(s, r.Off, class)
	}
	off := l.take()
	if l.free == 0 {
		s.unlink(l)
	}
	c := uint64(classes[class])
	a.used, a.slack = a.used+c, a.slack-c
	s.used += c
	a.check()
	return Block{Off: off, Size: c, Slab: true, Owner: s.owner}, true
}

func (a *Allocator) addSlab(s *ownerState, off uint64, class uint8) *slab {
	l := newSlab(off, class)
	l.side = s
	a.take(s, Range{off, slabBytes(class)})
	for g := off; g < off+slabBytes(class); g += granule {
		a.slabs[g] = l
	}
	a.slack += slabBytes(class)
	s.link(l)
	return l
}

func (a *Allocator) dropSlab(l *slab) {
	n := slabBytes(l.class)
	for g := l.off; g < l.off+n; g += granule {
		delete(a.slabs, g)
	}
	a.slack -= n
	l.side.unlink(l)
	a.give(l.side, Range{l.off, n})
}

// Free takes a block back. An empty slab becomes free space at once.
func (a *Allocator) Free(b Block) error {
	if b.Slab {
		return a.freeSmall(b)
	}
	if b.Size == 0 || b.Size%Page != 0 || b.Off%Page != 0 || b.End() > a.limit || b.End() < b.Off || !a.free.disjoint(b.Range()) || a.sides[b.Owner] == nil || b.Size > a.sides[b.Owner].used {
		return fmt.Errorf("free of extent [%d, +%d): %w", b.Off, b.Size, ErrBadBlock)
	}
	s := a.sides[b.Owner]
	a.used -= b.Size
	s.used -= b.Size
	a.give(s, b.Range())
	return nil
}

// End is the first byte after the block.
func (b Block) End() uint64 { return b.Off + b.Size }

func (a *Allocator) freeSmall(b Block) error {
	s := a.slabs[b.Off&^(granule-1)]
	if s == nil || uint64(classes[s.class]) != b.Size || s.side.owner != b.Owner {
		return fmt.Errorf("free of small block [%d, +%d): %w", b.Off, b.Size, ErrBadBlock)
	}
	i := s.index(b.Off)
	if i < 0 || !s.has(i) {
		return fmt.Errorf("free of small block [%d, +%d): %w", b.Off, b.Size, ErrBadBlock)
	}
	if s.free == 0 {
		s.side.link(s)
	}
	s.clear(i)
	a.used, a.slack = a.used-b.Size, a.slack+b.Size
	s.side.used -= b.Size
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
	if err := a.Free(Block{Off: b.Off + keep, Size: b.Size - keep, Owner: b.Owner}); err != nil {
		return b, err
	}
	b.Size = keep
	return b, nil
}

// Restore adds a block that an earlier allocator of the same limit had handed out. The block's memory counts as
// backed.
func (a *Allocator) Restore(b Block) error {
	if !b.Slab {
		if b.Size == 0 || b.Size%Page != 0 || b.Off%Page != 0 || b.End() < b.Off || !a.free.contains(b.Range()) {
			return fmt.Errorf("restore of extent [%d, +%d): %w", b.Off, b.Size, ErrBadBlock)
		}
		own := a.state(b.Owner)
		a.take(own, b.Range())
		a.Back(Owned{b.Owner, b.Range()})
		a.used += b.Size
		own.used += b.Size
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
		s = a.addSlab(a.state(b.Owner), r.Off, class)
	}
	i := s.index(b.Off)
	if s.class != class || s.side.owner != b.Owner || i < 0 || s.has(i) {
		if s.free == s.n {
			a.dropSlab(s)
		}
		return fmt.Errorf("restore of small block [%d, +%d): %w", b.Off, b.Size, ErrBadBlock)
	}
	s.set(i)
	if s.free == 0 {
		s.side.unlink(s)
	}
	a.used, a.slack = a.used+b.Size, a.slack-b.Size
	s.side.used += b.Size
	a.Back(Owned{b.Owner, b.Range()})
	return nil
}

// check panics if the totals do not add up to the limit.
func (a *Allocator) check() {
	if a.used > a.limit || a.used+a.slack+a.withheld.total+a.free.total != a.limit {
		panic(fmt.Sprintf("allocator: %d used, %d in slabs, %d withheld, %d free of a limit of %d", a.used, a.slack, a.withheld.total, a.free.total, a.limit))
	}
}
