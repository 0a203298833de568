package alloc

import "math/bits"

// Sizes of the layout.
const (
	Page  = 4096     // alignment and unit of large blocks
	Align = 64       // alignment of small ones: Arrow's
	Large = 64 << 10 // the smallest size that is not taken from a slab

	granule = 64 << 10 // unit of slabs, by which a block finds its slab
)

// classes are the block sizes of slabs: four to each doubling, so at most a fifth is wasted.
var classes = func() []uint32 {
	var cs []uint32
	for c := uint32(Align); c < Large; {
		cs = append(cs, c)
		step := uint32(1) << (bits.Len32(c) - 1) / 4
		c += max(Align, step)
	}
	return append(cs, Large)
}()

// classOf is the index of the smallest class that holds size bytes.
var classOf = func() [Large/Align + 1]uint8 {
	var t [Large/Align + 1]uint8
	c := 0
	for i := range t {
		for int(classes[c]) < i*Align {
			c++
		}
		t[i] = uint8(c)
	}
	return t
}()

// slabBytes is the length of a class's slabs, a power of two; a slab lies at a multiple of
// its own length, so that a block's offset alone tells where its slab begins.
func slabBytes(class uint8) uint64 {
	return max(granule, uint64(1)<<bits.Len64(8*uint64(classes[class])-1))
}

// slab is one extent cut into blocks of one class.
type slab struct {
	off   uint64
	class uint8
	free  int      // blocks not handed out
	n     int      // blocks in all
	used  []uint64 // one bit a block
	side  *ownerState
	prev  *slab // in the class's list of slabs with room
	next  *slab
}

func newSlab(off uint64, class uint8) *slab {
	n := int(slabBytes(class) / uint64(classes[class]))
	return &slab{off: off, class: class, free: n, n: n, used: make([]uint64, (n+63)/64)}
}

// take hands out the lowest free block.
func (s *slab) take() uint64 {
	for w, u := range s.used {
		if u != ^uint64(0) {
			i := w*64 + bits.TrailingZeros64(^u)
			if i >= s.n {
				break
			}
			s.used[w] |= 1 << (i & 63)
			s.free--
			return s.off + uint64(i)*uint64(classes[s.class])
		}
	}
	return 0
}

// index is the number of the block at off, or -1 if none begins there.
func (s *slab) index(off uint64) int {
	d := off - s.off
	c := uint64(classes[s.class])
	if off < s.off || d%c != 0 || d/c >= uint64(s.n) {
		return -1
	}
	return int(d / c)
}

func (s *slab) has(i int) bool { return s.used[i>>6]&(1<<(i&63)) != 0 }

func (s *slab) set(i int) {
	s.used[i>>6] |= 1 << (i & 63)
	s.free--
}

func (s *slab) clear(i int) {
	s.used[i>>6] &^= 1 << (i & 63)
	s.free++
}
