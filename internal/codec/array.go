package codec

import (
	"strconv"
	"unsafe"
)

// sliceHeader is a slice as the compiler lays it out.
type sliceHeader struct {
	data unsafe.Pointer
	len  int
	cap  int
}

// raw encodes n bytes of memory as they are.
func (p *Plan) raw(from unsafe.Pointer, n int, scratch []byte, inline int) Encoded {
	src := unsafe.Slice((*byte)(from), n)
	e := Encoded{Meta: p.meta, Size: n}
	if n <= inline {
		e.Inline = append(scratch, src...)
		return e
	}
	e.Inline = src
	return e
}

// slice gives data as a slice of the plan's elements: data itself if alias is set and it is
// aligned, else a copy. Its capacity is its length, so appending never writes to data.
func (p *Plan) slice(data []byte, alias bool) sliceHeader {
	n := len(data) / int(p.size)
	if n == 0 {
		return sliceHeader{data: unsafe.Pointer(unsafe.SliceData([]uint64{}))}
	}
	at := unsafe.Pointer(unsafe.SliceData(data))
	if !alias || uintptr(at)%p.elem.align() != 0 {
		// Allocate whole words, so that the memory is aligned for every element type.
		words := make([]uint64, (len(data)+7)/8)
		at = unsafe.Pointer(unsafe.SliceData(words))
		copy(unsafe.Slice((*byte)(at), len(data)), data)
	}
	return sliceHeader{data: at, len: n, cap: n}
}

func (e Elem) align() uintptr {
	switch e {
	case Complex64:
		return 4
	case Complex128:
		return 8
	}
	return e.Size()
}

// arrayFits says why a stored array does not have the plan's type, or "" if it does.
func (p *Plan) arrayFits(h Header, data []byte) string {
	if h.Elem != p.elem {
		return "element types differ"
	}
	have := h.Dims
	if len(have) == 0 {
		have = []uint64{0}
	}
	// A flat slice takes an array of any shape, row by row.
	if len(p.inner) > 0 {
		if len(have) != len(p.inner)+1 {
			return strconv.Itoa(len(have)) + " dimensions, not " + strconv.Itoa(len(p.inner)+1)
		}
		for i, d := range p.inner {
			if have[i+1] != d {
				return "dimension " + strconv.Itoa(i+1) + " differs"
			}
		}
	}
	if len(data)%int(p.size) != 0 {
		return strconv.Itoa(len(data)) + " bytes are no whole number of elements"
	}
	total, open := uint64(h.Elem.Size()), false
	for i, d := range have {
		switch {
		case d == 0 && i == 0:
			open = true
		case d != 0 && total > uint64(len(data))/d && len(data) > 0:
			return "the shape is larger than the data"
		default:
			total *= d
		}
	}
	if total == 0 && len(data) > 0 || !open && total != uint64(len(data)) || open && total != 0 && uint64(len(data))%total != 0 {
		return "shape and " + strconv.Itoa(len(data)) + " bytes disagree"
	}
	if p.elem == Bool {
		for _, b := range data {
			if b > 1 {
				return "a byte of " + strconv.Itoa(int(b)) + " is no bool"
			}
		}
	}
	return ""
}
