package format

import (
	"math"

	"mobula/internal/ids"
)

// Page is the unit of direct I/O: offsets, lengths and addresses are multiples of it.
const Page = 4096

const (
	// Large is the size from which an object starts at a page, so that it can be moved between segment and file
	// without a copy.
	Large = 64 << 10
	// smallAlign is the alignment of smaller objects, the same as in the segment.
	smallAlign = 64
	headerSize = Page
)

// Object is one object to write.
type Object struct {
	ID      ids.ObjectID
	Attempt uint32
	Data    []byte // unchanged until the write is done
	Copy    *Copy  // nil: Data has the bytes
}

// Copy is an object that lies in spill storage already: its bytes are read while they are written.
type Copy struct {
	Size uint64
	CRC  uint32 // of the bytes, which are checked against it
}

// Len is how many bytes the object has.
func (o Object) Len() uint64 {
	if o.Copy != nil {
		return o.Copy.Size
	}
	return uint64(len(o.Data))
}

// Entry is an object's entry in a file's index.
type Entry struct {
	ID      ids.ObjectID
	Attempt uint32
	Off     uint64 // from the file's start
	Size    uint64
	CRC     uint32 // CRC-32C of the bytes
}

// Align rounds n up to a multiple of to, a power of two.
func Align(n, to uint64) uint64 { return (n + to - 1) &^ (to - 1) }

// Place is the offset of an object of size bytes after off.
func Place(off, size uint64) uint64 {
	if size >= Large {
		return Align(off, Page)
	}
	return Align(off, smallAlign)
}

// Sizes is the layout of a file: where the index starts and how long the file is.
func Sizes(objects []Object) (indexOff, size uint64) {
	off := uint64(headerSize)
	for i := range objects {
		n := objects[i].Len()
		off = Place(off, n) + n
	}
	indexOff = Align(off, smallAlign)
	return indexOff, fileSize(indexOff, Header{Count: uint32(len(objects))}.IndexLen())
}

// Footprint is how many bytes an object of size bytes takes in a file at most, with what it takes to align it and its entry in the index. A file is longer
// than its objects' footprints by Overhead at most.
func Footprint(size uint64) uint64 {
	n := Align(size, smallAlign) + entrySize
	if size >= Large {
		n += Page
	}
	return n
}

// Overhead is what a file takes beside its objects: its header, and the rest of its last page.
const Overhead = 2 * Page

// fileSize is the length of a file whose index of that length starts at indexOff; 0 if such a file is not
// possible.
func fileSize(indexOff, index uint64) uint64 {
	if indexOff > math.MaxInt64/2 {
		return 0
	}
	return Align(indexOff+index, Page)
}
