package wire

import (
	"encoding/binary"
	"os"

	"mobula/internal/errs"
)

// A frame is a header and a payload. The header is the magic "Mb", the version of the
// framing, flags, and the payload's length as a little-endian uint32. The payload is the
// encoding of message Frame of mobula.proto: (kind, length, body) any number of times.
const (
	headerSize   = 8
	frameVersion = 1
	flagFile     = 1 << 0 // a file descriptor travels with the frame's first byte
	knownFlags   = flagFile
)

// frameTarget is the size at which a sender closes a frame and starts the next. A message
// that is larger by itself has a frame of its own. A receiver reads frames of up to this
// size through a shared buffer and copies what messages keep of them; it reads a larger
// frame into a buffer of its own, which the message may keep.
const frameTarget = 64<<10 - headerSize

type header struct {
	flags byte
	size  int // of the payload
}

// parseHeader reads the first headerSize bytes of b.
func parseHeader(b []byte, limit int) (header, error) {
	h := header{flags: b[3], size: int(binary.LittleEndian.Uint32(b[4:]))}
	switch {
	case b[0] != 'M' || b[1] != 'b':
		return h, errs.New(errs.CodeProtocol, "a frame starts with %q, not with \"Mb\": the other side does not speak this protocol", b[:2])
	case b[2] != frameVersion:
		return h, errs.New(errs.CodeProtocol, "framing version %d, this build understands %d", b[2], frameVersion)
	case h.flags&^knownFlags != 0:
		return h, errs.New(errs.CodeProtocol, "unknown frame flags %#x", h.flags&^knownFlags)
	case h.size > limit:
		return h, errs.New(errs.CodeProtocol, "a frame announces %d bytes, the limit is %d", h.size, limit)
	}
	return h, nil
}

func putHeader(b []byte, h header) {
	b[0], b[1], b[2], b[3] = 'M', 'b', frameVersion, h.flags
	binary.LittleEndian.PutUint32(b[4:], uint32(h.size))
}

// A FrameWriter collects messages as frames until somebody writes them. It does no I/O. One goroutine at a time.
type FrameWriter struct {
	enc   encoder
	open  bool // a frame is open
	at    int  // its header's offset in enc.b
	base  int  // enc.size() there
	count int  // its messages
	files []outFile
}

// outFile is a descriptor to pass with the frame whose header is at offset at.
type outFile struct {
	at   int
	file *os.File
}

// NewFrameWriter makes a writer that copies byte strings shorter than splice; a longer one is written from where it
// is, as a part of its own.
func NewFrameWriter(splice int) *FrameWriter { return &FrameWriter{enc: encoder{alias: splice}} }

// For says which options were sent to the other side of the connection. With nil the writer forgets the connection.
func (o *FrameWriter) For(sent *OptionsCache) { o.enc.opts = sent }

// Size is the number of bytes collected.
func (o *FrameWriter) Size() int { return o.enc.size() }

// Cap is the size of the writer's buffer.
func (o *FrameWriter) Cap() int { return cap(o.enc.b) }

// Add appends m, with file if that is not nil. On an error nothing of m is added, but of an Exec: one that is too
// large as it is becomes several, since its tasks follow one another either way.
func (o *FrameWriter) Add(m Msg, file *os.File) error {
	if x, ok := m.(*Encoded); ok {
		return o.appendEncoded(x)
	}
	err := o.add(m, file)
	if err == nil {
		return nil
	}
	x, ok := m.(*Exec)
	if !ok || len(x.Tasks) < 2 {
		return err
	}
	half := len(x.Tasks) / 2
	if err := o.Add(&Exec{Lease: x.Lease, Tasks: x.Tasks[:half]}, file); err != nil {
		return err
	}
	return o.Add(&Exec{Lease: x.Lease, Tasks: x.Tasks[half:]}, nil)
}

// add is Add of one message.
func (o *FrameWriter) add(m Msg, file *os.File) error {
	if m == nil {
		return errs.New(errs.CodeInvalid, "a nil message")
	}
	if file != nil {
		o.close()
	}
	e, at := &o.enc, o.begin()
	open, ext := e.open(uint64(m.Kind()))
	known := e.message(m)
	e.close(open, ext)
	if err := e.refuse(m, known, e.size()-at.size); err != nil {
		e.truncate(at.before, at.exts)
		o.open = !at.fresh
		return err
	}
	o.end(at, file)
	return nil
}

// place is where a message begins.
type place struct {
	before, exts int  // in enc, before the header of its frame
	fresh        bool // that is a new one
	start, size  int  // in enc, behind it
}

// begin begins a message, in a new frame if none is open.
func (o *FrameWriter) begin() place {
	e := &o.enc
	at := place{before: len(e.b), exts: len(e.ext), fresh: !o.open}
	if at.fresh {
		o.open, o.at, o.base, o.count = true, at.before, e.size(), 0
		e.b = append(e.b, make([]byte, headerSize)...)
	}
	at.start, at.size = len(e.b), e.size()
	return at
}

// end ends a message: it is in a frame of its own if the one before is full.
func (o *FrameWriter) end(at place, file *os.File) {
	e := &o.enc
	if o.count > 0 && e.size()-o.base-headerSize > frameTarget {
		o.seal(at.size - o.base - headerSize)
		e.insert(at.start, headerSize)
		o.at, o.base, o.count = at.start, at.size, 0
	}
	o.count++
	if file != nil {
		o.files = append(o.files, outFile{o.at, file})
	}
	if file != nil || e.size()-o.base-headerSize > frameTarget {
		o.close()
	}
}

// refuse says why the message just encoded must not be sent.
func (e *encoder) refuse(m Msg, known bool, size int) error {
	err := e.bad
	e.bad = nil
	switch {
	case !known:
		return errs.New(errs.CodeInvalid, "%T is no message of this protocol", m)
	case size > MaxFrame:
		return errs.New(errs.CodeInvalid, "a %v message of %d bytes, the limit is %d: put large values into the object store", m.Kind(), size, MaxFrame)
	}
	return err
}

// close ends the open frame, if there is one.
func (o *FrameWriter) close() {
	if o.open {
		o.seal(o.enc.size() - o.base - headerSize)
		o.open = false
	}
}

// seal writes the open frame's header.
func (o *FrameWriter) seal(size int) { putHeader(o.enc.b[o.at:], header{size: size}) }

// A Part is a run of bytes to write; its file goes with the first of them.
type Part struct {
	Data []byte
	File *os.File
}

// Parts cuts the frames into runs that lie together in memory, and appends them to dst.
func (o *FrameWriter) Parts(dst []Part) []Part {
	o.close()
	b, pos, files, ext := o.enc.b, 0, o.files, o.enc.ext
	var file *os.File
	flush := func(to int) {
		if to > pos {
			dst = append(dst, Part{b[pos:to], file})
			pos, file = to, nil
		}
	}
	for len(files)+len(ext) > 0 {
		if len(files) > 0 && (len(ext) == 0 || files[0].at < ext[0].at) {
			flush(files[0].at)
			b[files[0].at+3] |= flagFile
			file, files = files[0].file, files[1:]
			continue
		}
		flush(ext[0].at)
		dst = append(dst, Part{Data: ext[0].data})
		ext = ext[1:]
	}
	flush(len(b))
	return dst
}

// Reset forgets what was written. The files are the caller's to close before, see CloseFiles.
func (o *FrameWriter) Reset() {
	o.enc.truncate(0, 0)
	o.files, o.open = nil, false
}

// CloseFiles closes the files of messages that were written, or never will be.
func (o *FrameWriter) CloseFiles() {
	for _, f := range o.files {
		_ = f.file.Close() // a copy of the connection's own
	}
	o.files = nil
}
