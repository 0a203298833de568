package index

import (
	"encoding/binary"
	"hash/crc32"
	"slices"
)

// An overflow page: the next page's number + 1, the length of its data, the data. The
// checksum of the whole payload is in the record.
const (
	pageHead = 8
	pageData = pageSize - pageHead
)

func (x *Index) page(n uint32) []byte {
	w := x.over[n/pagesPerWin]
	off := windowHead + int(n%pagesPerWin)*pageSize
	return w[off : off+pageSize]
}

// putPayload writes path and payload and notes their place in h.
func (x *Index) putPayload(h *half, path string, payload []byte) error {
	h.payHead, h.payCRC, h.inline = 0, 0, nil
	h.pathLen = uint16(len(path))
	n := len(path) + len(payload)
	h.payLen = uint32(n)
	if n == 0 {
		return nil
	}
	all := payload
	if path != "" {
		all = append([]byte(path), payload...)
	}
	if n <= inlineMax {
		h.inline = slices.Clone(all)
		return nil
	}
	count := (n + pageData - 1) / pageData
	for len(x.pages) < count {
		if err := x.grow(kindOverflow); err != nil {
			return err
		}
	}
	h.payCRC = crc32.Checksum(all, castagnoli)
	next := uint32(0)
	for i := count - 1; i >= 0; i-- {
		p := x.pages[len(x.pages)-1]
		x.pages = x.pages[:len(x.pages)-1]
		part := all[i*pageData : min(n, (i+1)*pageData)]
		b := x.page(p)
		binary.LittleEndian.PutUint32(b, next)
		binary.LittleEndian.PutUint32(b[4:], uint32(len(part)))
		copy(b[pageHead:], part)
		next = p + 1
	}
	h.payHead = next
	return nil
}

// freePages returns a payload's pages.
func (x *Index) freePages(head uint32) {
	for head != 0 {
		x.pages = append(x.pages, head-1)
		head = binary.LittleEndian.Uint32(x.page(head - 1))
	}
}

// payload reads back what putPayload wrote.
func (x *Index) payload(h *half) []byte {
	if h.payHead == 0 {
		return h.inline
	}
	out := make([]byte, 0, h.payLen)
	for at := h.payHead; at != 0; {
		b := x.page(at - 1)
		out = append(out, b[pageHead:pageHead+binary.LittleEndian.Uint32(b[4:])]...)
		at = binary.LittleEndian.Uint32(b)
	}
	return out
}

// getPayload reads a half's payload and marks its pages as used; false if any part is wrong.
func (x *Index) getPayload(h *half, used []bool) ([]byte, bool) {
	if h.payHead == 0 {
		return slices.Clone(h.inline), true
	}
	out := make([]byte, 0, min(h.payLen, 1<<20))
	var chain []uint32
	for at := h.payHead; at != 0; {
		n := at - 1
		if int(n) >= len(used) || used[n] || len(chain) > int(h.payLen)/pageData {
			return nil, false
		}
		b := x.page(n)
		size := binary.LittleEndian.Uint32(b[4:])
		if size > pageData || len(out)+int(size) > int(h.payLen) {
			return nil, false
		}
		out = append(out, b[pageHead:pageHead+size]...)
		chain = append(chain, n)
		at = binary.LittleEndian.Uint32(b)
	}
	if len(out) != int(h.payLen) || crc32.Checksum(out, castagnoli) != h.payCRC {
		return nil, false
	}
	for _, n := range chain {
		if used[n] {
			return nil, false
		}
		used[n] = true
	}
	return out, true
}
