package segment

import "mobula/internal/errs"

// lookStep is how much is written to a cold room between two looks at the memory that there is.
const lookStep = 16 << 20

// Room is where the bytes of one object go as they come, from the beginning on. One goroutine at a time writes to it; others may read what was written.
//
// A cold room has no memory yet. Its bytes are written through the file, which brings the pages: so a lack of memory is an error, not a signal, and
// a page costs half of what it does at the first touch of a mapping, which zeroes it, and faults.
type Room struct {
	Bytes  []byte   // of a cold room only what was written may be touched
	file   *Segment // of a cold room
	off    uint64   // in the file
	looked int      // there was memory up to here
}

// NewRoom is memory that is there.
func NewRoom(b []byte) *Room { return &Room{Bytes: b} }

// ColdRoom is a part of a segment, mapped as b, that is not known to have memory.
func (s *Segment) ColdRoom(b []byte, off uint64) *Room { return &Room{Bytes: b, file: s, off: off} }

// Cold tells whether the room may be written by Write alone.
func (r *Room) Cold() bool { return r.file != nil }

// Write puts bytes at an offset. It fails with errs.CodeSegmentUnavailable if there is no memory for them.
func (r *Room) Write(at int, p []byte) error {
	if at < 0 || at+len(p) > len(r.Bytes) {
		return errs.New(errs.CodeInvalid, "write of [%d, +%d) to a room of %d bytes", at, len(p), len(r.Bytes))
	}
	if !r.Cold() {
		copy(r.Bytes[at:], p)
		return nil
	}
	for r.looked < at+len(p) {
		n := min(lookStep, len(r.Bytes)-r.looked)
		if err := r.file.CanReserve([]Range{{r.off + uint64(r.looked), uint64(n)}}); err != nil {
			return err
		}
		r.looked += n
	}
	if _, err := r.file.file.WriteAt(p, int64(r.off)+int64(at)); err != nil {
		return unavailable("write of %d bytes: %v: enlarge %s or give the store a smaller limit", len(p), err, r.file.where())
	}
	return nil
}

// Expect gives the part of a room that is not cold to which bytes are about to be written. Its pages are read first: a read has sixteen pages mapped at
// a time where a write has one, so that memory which another process has used before costs a quarter.
func (r *Room) Expect(from, to int) []byte {
	b := r.Bytes[from:to]
	var sum byte
	for i := 0; i < len(b); i += pageSize {
		sum ^= b[i]
	}
	mapped(sum)
	return b
}

// mapped keeps the reads of Expect from being left out.
//
//go:noinline
func mapped(byte) {}
