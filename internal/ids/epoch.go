package ids

// An epoch is a home, a life of it and a number that was given out once in that life; the latter two lose their high bits.
const (
	lifeBits  = 14
	epochBits = 64 - HomeBits - lifeBits
)

// Epoch is the n-th epoch of a home's life. A component that is built anew has one of its own: an answer with another one is for a component before it, or for
// one of another node. Lives and numbers come again after 16,384 and 8,388,608, when nobody has such an answer on its way.
func (h Home) Epoch(life, n uint64) uint64 {
	return uint64(h)<<(lifeBits+epochBits) | life&(1<<lifeBits-1)<<epochBits | n&(1<<epochBits-1)
}
