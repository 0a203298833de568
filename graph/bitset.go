package graph

import "math/bits"

// bitset is a set of positions.
type bitset []uint64

func newBitset(n int) bitset { return make(bitset, (n+63)/64) }

func (b bitset) set(i int32)      { b[i>>6] |= 1 << (i & 63) }
func (b bitset) clear(i int32)    { b[i>>6] &^= 1 << (i & 63) }
func (b bitset) has(i int32) bool { return b[i>>6]&(1<<(i&63)) != 0 }

// next gives the first member in [from, to), or none.
func (b bitset) next(from, to int32) int32 {
	for from < to {
		w := b[from>>6] >> (from & 63)
		if w != 0 {
			if i := from + int32(bits.TrailingZeros64(w)); i < to {
				return i
			}
			return none
		}
		from = (from>>6 + 1) << 6
	}
	return none
}
