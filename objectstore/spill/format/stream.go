package format

import (
	"errors"
	"fmt"
	"unsafe"
)

// Buffers lends page-aligned memory.
type Buffers interface {
	Get() []byte  // BatchBytes long, page-aligned, of any content
	Put(b []byte) // may be called from any goroutine
}

// BatchBytes is the largest size of a batch: enough for a disk to work at full speed with two in flight.
const BatchBytes = 4 << 20

// Batch is a run of a file. Every piece is page-aligned and a multiple of a page long.
type Batch struct {
	Off    uint64 // in the file, a multiple of a page
	Pieces [][]byte
	Len    int // sum of the pieces

	bounce []byte
	bufs   Buffers
}

// Free gives the batch's memory back. Its pieces are invalid then.
func (b *Batch) Free() {
	if b.bounce != nil {
		b.bufs.Put(b.bounce)
		b.bounce = nil
	}
	b.Pieces = nil
}

// Stream is the content of one spill file, made on the fly.
type Stream struct {
	header  Header
	objects []Object
	bufs    Buffers
	read    func(object int, off uint64, p []byte) error

	entries []Entry
	err     error
	off     uint64 // of the next byte in the file
	next    int    // object under way; len(objects): the index; beyond: the end
	done    int    // bytes of it that were sent
	tail    []byte // the encoded index

	cur   *Batch
	used  int // bytes of bounce taken
	start int // start of the part of bounce that is not in a piece yet
}

// NewStream starts a file with objects. Count, IndexOff and Size of the header are filled in.
func NewStream(h Header, objects []Object, bufs Buffers) *Stream {
	h.Count = uint32(len(objects))
	h.IndexOff, h.Size = Sizes(objects)
	return &Stream{header: h, objects: objects, bufs: bufs, entries: make([]Entry, 0, len(objects))}
}

// ReadWith has a stream read those objects that are copies of what lies in spill storage: it is called with the number of one, an offset in it, and the bytes
// to fill.
func (s *Stream) ReadWith(read func(object int, off uint64, p []byte) error) { s.read = read }

// Err is why a stream has ended before the end of its file: an object that is copied could not be read, or is not what it was.
func (s *Stream) Err() error { return s.err }

// Size is the length of the whole file.
func (s *Stream) Size() uint64 { return s.header.Size }

// Entries gives the place of each object; it is complete when Next has returned nil.
func (s *Stream) Entries() []Entry { return s.entries }

// Rewind starts again from the first byte.
func (s *Stream) Rewind() {
	*s = Stream{header: s.header, objects: s.objects, bufs: s.bufs, read: s.read, entries: s.entries[:0]}
}

// Next is the next batch, nil at the end, or if Err says why there is none. The caller frees it.
func (s *Stream) Next() *Batch {
	if s.off >= s.header.Size || s.err != nil {
		return nil
	}
	s.cur = &Batch{Off: s.off, bounce: s.bufs.Get(), bufs: s.bufs}
	s.used, s.start = 0, 0
	if s.off == 0 {
		n := len(AppendHeader(s.cur.bounce[:0], s.header))
		clear(s.cur.bounce[n:headerSize])
		s.used, s.off = headerSize, headerSize
	}
	for s.room() > 0 && s.next < len(s.objects) {
		if s.err = s.object(); s.err != nil {
			s.cur.Free()
			s.cur = nil
			return nil
		}
	}
	for s.room() > 0 && s.off < s.header.Size {
		s.index()
	}
	s.cut()
	b := s.cur
	s.cur = nil
	return b
}

func (s *Stream) room() int { return BatchBytes - int(s.off-s.cur.Off) }

// object sends as much of the present object as fits.
func (s *Stream) object() error {
	o := &s.objects[s.next]
	size := o.Len()
	if s.done == 0 && len(s.entries) == s.next {
		at := Place(s.off, size)
		if !s.zeros(int(at - s.off)) {
			return nil
		}
		s.entries = append(s.entries, Entry{ID: o.ID, Attempt: o.Attempt, Off: at, Size: size})
	}
	if o.Copy != nil {
		return s.copied(o.Copy)
	}
	rest := o.Data[s.done:]
	n := min(len(rest), s.room())
	if whole := n &^ (Page - 1); size >= Large && whole > 0 && aligned(rest) {
		n = whole
		s.cut()
		s.cur.Pieces = append(s.cur.Pieces, rest[:n])
		s.cur.Len += n
		s.off += uint64(n)
	} else {
		s.copy(rest[:n])
	}
	e := &s.entries[s.next]
	e.CRC = Extend(e.CRC, rest[:n])
	if s.done += n; s.done == len(o.Data) {
		s.next, s.done = s.next+1, 0
	}
	return nil
}

// copied sends as much of an object that is copied as fits.
func (s *Stream) copied(c *Copy) error {
	n := int(min(c.Size-uint64(s.done), uint64(s.room())))
	p := s.cur.bounce[s.used : s.used+n]
	if n > 0 {
		if err := s.read(s.next, uint64(s.done), p); err != nil {
			return err
		}
	}
	s.used += n
	s.off += uint64(n)
	e := &s.entries[s.next]
	e.CRC = Extend(e.CRC, p)
	if s.done += n; uint64(s.done) < c.Size {
		return nil
	}
	if e.CRC != c.CRC {
		return fmt.Errorf("%d bytes that are copied have the checksum %08x, want %08x: %w", c.Size, e.CRC, c.CRC, ErrChanged)
	}
	s.next, s.done = s.next+1, 0
	return nil
}

// ErrChanged says that an object that is copied is not what it was.
var ErrChanged = errors.New("spilled bytes have changed")

// index sends as much of the index, and the zeros after it, as fits.
func (s *Stream) index() {
	if s.tail == nil {
		if s.off < s.header.IndexOff && !s.zeros(int(s.header.IndexOff-s.off)) {
			return
		}
		s.tail = AppendIndex(nil, s.entries)
	}
	n := min(len(s.tail)-s.done, s.room())
	s.copy(s.tail[s.done : s.done+n])
	if s.done += n; s.done == len(s.tail) {
		s.zeros(int(min(s.header.Size-s.off, uint64(s.room()))))
	}
}

// zeros adds padding; false if the batch is full first.
func (s *Stream) zeros(n int) bool {
	fit := min(n, s.room())
	clear(s.cur.bounce[s.used : s.used+fit])
	s.used += fit
	s.off += uint64(fit)
	return fit == n
}

func (s *Stream) copy(p []byte) {
	copy(s.cur.bounce[s.used:], p)
	s.used += len(p)
	s.off += uint64(len(p))
}

// cut makes a piece of the bytes copied since the last one. It is called only when the file's offset is a multiple
// of a page.
func (s *Stream) cut() {
	if s.used > s.start {
		s.cur.Pieces = append(s.cur.Pieces, s.cur.bounce[s.start:s.used])
		s.cur.Len += s.used - s.start
		s.start = s.used
	}
}

func aligned(p []byte) bool { return uintptr(unsafe.Pointer(unsafe.SliceData(p)))%Page == 0 }
