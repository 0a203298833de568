package shell

import (
	"encoding/binary"
	"io"

	"mobula/internal/errs"
)

// readBuffer is what a connection reads into: one TLS record, of 16 KiB at most, behind the beginning of a frame.
const readBuffer = 32 << 10

// keepBuffer is the largest buffer that is kept for the next large frame, and keepFor how often it may be emptied without one.
const (
	keepBuffer = 256 << 10
	keepFor    = 64
)

// decoder cuts the bytes of one connection into frames. It does no I/O: who reads does so into room, and says with put how much came. One goroutine
// at a time. Frames lie in its buffer, until room is called next.
type decoder struct {
	limit int    // of a frame's body
	buf   []byte // buf[r:w] has come and was not taken
	r, w  int
	spare int // how often it was emptied since it was larger than readBuffer for a reason
}

func newDecoder(limit int) *decoder { return &decoder{limit: limit, buf: make([]byte, readBuffer)} }

// room is where the next bytes go. It is never empty. A large frame's buffer grows as its bytes come.
func (d *decoder) room() []byte {
	if d.r > 0 {
		d.w = copy(d.buf, d.buf[d.r:d.w])
		d.r = 0
	}
	if d.w == 0 && len(d.buf) > readBuffer {
		if d.spare++; len(d.buf) > keepBuffer || d.spare > keepFor {
			d.buf = make([]byte, readBuffer)
		}
	}
	if d.w == len(d.buf) { // inside a frame that is larger: next has checked its size
		whole := frameHeader + int(binary.LittleEndian.Uint32(d.buf))
		larger := make([]byte, min(2*len(d.buf), whole))
		copy(larger, d.buf)
		d.buf = larger
	}
	return d.buf[d.w:]
}

// put says that n bytes were written to room.
func (d *decoder) put(n int) { d.w += n }

// next takes a frame, if all of it has come.
func (d *decoder) next() (f frame, ok bool, err error) {
	have := d.buf[d.r:d.w]
	if len(have) < frameHeader {
		return f, false, nil
	}
	size, kind := binary.LittleEndian.Uint32(have), have[4]
	switch {
	case kind == 0 || kind >= kindEnd:
		return f, false, errs.New(errs.CodeProtocol, "a frame of kind %d of %d bytes: the other side does not speak this protocol", kind, size)
	case uint64(size) > uint64(d.limit):
		return f, false, errs.New(errs.CodeProtocol, "a frame announces %d bytes, the limit is %d", size, d.limit)
	case len(have)-frameHeader < int(size):
		return f, false, nil
	}
	if size > readBuffer {
		d.spare = 0
	}
	d.r += frameHeader + int(size)
	f, err = parseFrame(kind, have[frameHeader:frameHeader+int(size)])
	return f, err == nil, err
}

// inside tells whether a frame has come in part.
func (d *decoder) inside() bool { return d.w > d.r }

// ended is the error of a stream that ends here: io.EOF, or errs.ErrProtocol inside a frame.
func (d *decoder) ended() error {
	if n := d.w - d.r; n > 0 {
		return errs.New(errs.CodeProtocol, "the connection ended %d bytes into a frame", n)
	}
	return io.EOF
}
