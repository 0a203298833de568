package floor

import (
	"cmp"
	"encoding/binary"
	"math/bits"
	"slices"
)

// Records are as in the sort benchmark of sortbenchmark.org: 100 bytes, the first 10 are the key.
const (
	RecordBytes = 100
	KeyBytes    = 10
)

// Generate writes records number first and on into dst, a multiple of RecordBytes long. A record follows from its
// number alone; keys are uniform.
func Generate(dst []byte, first int64) {
	for i := 0; i+RecordBytes <= len(dst); i += RecordBytes {
		r := dst[i : i+RecordBytes : i+RecordBytes]
		n := uint64(first)
		binary.BigEndian.PutUint64(r, mix(n))
		binary.BigEndian.PutUint16(r[8:], uint16(mix(n+1<<63)))
		binary.BigEndian.PutUint64(r[10:], n)
		for at := 18; at+8 <= RecordBytes; at += 8 {
			binary.LittleEndian.PutUint64(r[at:], n*uint64(at))
		}
		r[98], r[99] = byte(n), byte(n>>8)
		first++
	}
}

// mix is the finaliser of SplitMix64: one to one, so that the first eight bytes of keys differ.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// entry is a record's key and where it lies.
type entry struct {
	key  uint64 // first 8 bytes
	tail uint16 // the other 2
	at   uint32 // record
}

func compare(a, b entry) int {
	if a.key != b.key {
		return cmp.Compare(a.key, b.key)
	}
	return cmp.Compare(a.tail, b.tail)
}

// Sorter sorts records in memory; its scratch space is kept between calls.
type Sorter struct{ from, to []entry }

// Sort puts the records of src in order into dst, as long as src. It is quickest for uniform keys: a
// counting pass over the leading bits leaves a handful of records in each bucket.
func (s *Sorter) Sort(dst, src []byte) {
	n := len(src) / RecordBytes
	if n == 0 {
		return
	}
	s.from, s.to = slices.Grow(s.from[:0], n)[:n], slices.Grow(s.to[:0], n)[:n]
	width := min(max(bits.Len(uint(n))-3, 1), 18)
	shift := 64 - width
	starts := make([]uint32, 1<<width+1)
	for i := range n {
		r := src[i*RecordBytes:]
		e := entry{binary.BigEndian.Uint64(r), binary.BigEndian.Uint16(r[8:]), uint32(i)}
		s.from[i] = e
		starts[e.key>>shift+1]++
	}
	for b := range 1 << width {
		starts[b+1] += starts[b]
	}
	next := slices.Clone(starts)
	for _, e := range s.from {
		b := e.key >> shift
		s.to[next[b]] = e
		next[b]++
	}
	for b := range 1 << width {
		slices.SortFunc(s.to[starts[b]:starts[b+1]], compare)
	}
	for i, e := range s.to {
		copy(dst[i*RecordBytes:(i+1)*RecordBytes], src[int(e.at)*RecordBytes:])
	}
}
