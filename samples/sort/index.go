package main

import (
	"bytes"
	"slices"
	"sort"
	"sync"
)

// entry is a record in the index of a chunk: the index is sorted, the records are moved once.
type entry struct {
	prefix uint64
	at     uint32 // number of the record in its chunk
}

// scratch is the index's memory, which is reused: 32 bytes per record of the chunk, all the heap that a split
// needs.
type scratch struct{ a, b []entry }

var scratches = sync.Pool{New: func() any { return new(scratch) }}

// index gives the records of data in order. It belongs to s.
func (s *scratch) index(data []byte) []entry {
	n := len(data) / recordSize
	s.a, s.b = slices.Grow(s.a[:0], n)[:n], slices.Grow(s.b[:0], n)[:n]
	for i := range s.a {
		s.a[i] = entry{prefix(data[i*recordSize:]), uint32(i)}
	}
	radix(s.a, s.b)
	settle(s.a, data)
	return s.a
}

// radix sorts by the upper 32 bits of the prefix; b is as long as a. Four passes, so the
// result is in a again.
func radix(a, b []entry) {
	for shift := 32; shift < 64; shift += 8 {
		var count [256]int
		for _, e := range a {
			count[byte(e.prefix>>shift)]++
		}
		at := 0
		for i, n := range count {
			count[i] = at
			at += n
		}
		for _, e := range a {
			k := byte(e.prefix >> shift)
			b[count[k]] = e
			count[k]++
		}
		a, b = b, a
	}
}

// settle orders the runs that radix left together by the rest of their keys.
func settle(a []entry, data []byte) {
	for i := 0; i < len(a); {
		j := i + 1
		for j < len(a) && a[j].prefix>>32 == a[i].prefix>>32 {
			j++
		}
		if j-i > 1 {
			slices.SortFunc(a[i:j], func(x, y entry) int {
				return bytes.Compare(data[x.at*recordSize:][:keySize], data[y.at*recordSize:][:keySize])
			})
		}
		i = j
	}
}

// cut gives for sorted records the position of each splitter: records before it are less.
func cut(n int, record func(i int) []byte, splitters []Key) []int {
	out := make([]int, len(splitters))
	from := 0
	for k := range splitters {
		from += sort.Search(n-from, func(i int) bool { return bytes.Compare(record(from + i)[:keySize], splitters[k][:]) >= 0 })
		out[k] = from
	}
	return out
}
