package oplog

import "math/bits"

// bitmap has a bit for each place in a segment where a record can begin, by its offset in units of align. So the log knows of its records without
// a look at their bytes, which may not be in memory.
type bitmap []uint64

func newBitmap(size int) bitmap { return make(bitmap, (places(size)+63)/64) }

// places is how many places there are before an offset.
func places(off int) int { return (off + align - 1) / align }

// has is false beyond the end too, so that none needs no bits.
func (b bitmap) has(i int) bool { return i/64 < len(b) && b[i/64]&(1<<(i%64)) != 0 }

func (b bitmap) set(i int) { b[i/64] |= 1 << (i % 64) }

// next is the first bit from i on that is set; end where it would be that or more.
func (b bitmap) next(i, end int) int {
	if i >= end {
		return end
	}
	w := i / 64
	if w >= len(b) {
		return end
	}
	for word := b[w] >> (i % 64) << (i % 64); ; word = b[w] {
		if word != 0 {
			return min(w*64+bits.TrailingZeros64(word), end)
		}
		if w++; w >= len(b) || w*64 >= end {
			return end
		}
	}
}
