package wire

import (
	"io"
	"os"
	"sync"

	"mobula/internal/errs"
	"mobula/internal/ids"
)

const (
	readBuffer = frameTarget + headerSize // holds any frame that is not large
	bigStart   = 256 << 10                // a large frame's buffer at first; it grows as bytes arrive
)

// MaxFiles is how many descriptors may have come without the frame that announces them.
const MaxFiles = 1

// buffers are shared by all connections: an idle one holds none.
var buffers = sync.Pool{New: func() any { return new([readBuffer]byte) }}

// A FrameReader turns the bytes of one connection into messages. It does no I/O: who has the connection reads into
// Room, tells with Put how much came, and takes the messages from Next. One goroutine at a time.
type FrameReader struct {
	Limit int   // of a frame's payload in bytes
	PID   int32 // of the process that sends, for errors' texts

	Passing ids.JobID // reports of this job's tasks are checked and come as Encoded; 0: of none

	dec Decoder

	box  *[readBuffer]byte // nil: nothing is buffered
	r, w int               // box[r:w] is not yet consumed

	big     []byte // a large frame's payload as far as it is here; nil: none
	bigSize int
	bigHead header

	files   []*os.File // came with bytes whose frame is not yet complete
	welcome *os.File   // came with a Welcome

	frames uint64 // complete ones so far, for error texts
	last   int    // messages of the last batch: a hint
}

// Room is where the next bytes go. It is never empty.
func (x *FrameReader) Room() []byte {
	if x.big != nil {
		if len(x.big) == cap(x.big) {
			next := make([]byte, len(x.big), min(2*cap(x.big), x.bigSize))
			copy(next, x.big)
			x.big = next
		}
		return x.big[len(x.big):cap(x.big)]
	}
	if x.box == nil {
		x.box, x.r, x.w = buffers.Get().(*[readBuffer]byte), 0, 0
	}
	if x.r > 0 {
		x.w = copy(x.box[:], x.box[x.r:x.w])
		x.r = 0
	}
	return x.box[x.w:]
}

// Put says that n bytes were written to Room.
func (x *FrameReader) Put(n int) {
	if x.big != nil {
		x.big = x.big[:len(x.big)+n]
	} else {
		x.w += n
	}
}

// PutFiles says which descriptors came with those bytes: the reader closes the ones that no message takes.
func (x *FrameReader) PutFiles(files []*os.File) error {
	x.files = append(x.files, files...)
	if len(x.files) > MaxFiles {
		return errs.New(errs.CodeProtocol, "%d file descriptors without a frame that announces them", len(x.files))
	}
	return nil
}

// Next gives the messages of every complete frame, in order; nil: there is none. With an error, errs.ErrProtocol, come
// those before the fault.
func (x *FrameReader) Next() ([]Msg, error) {
	batch, err := x.parse()
	if len(batch) > 0 {
		x.last = len(batch)
	}
	return batch, err
}

// Ended is the error of a stream that ends here: io.EOF, or errs.ErrProtocol inside a frame.
func (x *FrameReader) Ended() error {
	switch have := x.w - x.r; {
	case x.big != nil:
		return errs.New(errs.CodeProtocol, "frame %d is truncated: %d of %d bytes came before the end", x.frames+1, len(x.big), x.bigSize)
	case have >= headerSize:
		h, _ := parseHeader(x.box[x.r:x.w], x.Limit) // was checked when it came
		return errs.New(errs.CodeProtocol, "frame %d is truncated: %d of %d bytes came before the end", x.frames+1, have-headerSize, h.size)
	case have > 0:
		return errs.New(errs.CodeProtocol, "frame %d is truncated: %d of %d bytes of its header came before the end", x.frames+1, have, headerSize)
	}
	return io.EOF
}

// Shed gives an empty buffer back: nothing is held between two messages.
func (x *FrameReader) Shed() {
	if x.r == x.w && x.box != nil {
		buffers.Put(x.box)
		x.box, x.r, x.w = nil, 0, 0
	}
}

// TakeFile gives, once, the descriptor that came with the last Welcome; nil: none did.
func (x *FrameReader) TakeFile() *os.File {
	f := x.welcome
	x.welcome = nil
	return f
}

// Release gives back what an ended connection holds.
func (x *FrameReader) Release() {
	for _, f := range append(x.files, x.TakeFile()) {
		if f != nil {
			_ = f.Close() // nobody took it
		}
	}
	x.files, x.big = nil, nil
	if x.box != nil {
		buffers.Put(x.box)
		x.box = nil
	}
}

func (x *FrameReader) parse() (batch []Msg, err error) {
	if x.big != nil {
		if len(x.big) < x.bigSize {
			return nil, nil
		}
		payload := x.big
		x.big = nil
		return x.frame(nil, x.bigHead, payload, true)
	}
	for x.w-x.r >= headerSize {
		h, err := parseHeader(x.box[x.r:x.w], x.Limit)
		if err != nil {
			return batch, x.inFrame(err)
		}
		have := x.box[x.r+headerSize : x.w]
		if h.size > readBuffer-headerSize {
			x.big = append(make([]byte, 0, min(h.size, max(bigStart, 2*len(have)))), have...)
			x.bigSize, x.bigHead = h.size, h
			x.r, x.w = 0, 0
			return batch, nil // the buffer held only the frame's beginning
		}
		if len(have) < h.size {
			return batch, nil
		}
		x.r += headerSize + h.size
		if batch, err = x.frame(batch, h, have[:h.size], false); err != nil {
			return batch, err
		}
	}
	return batch, nil
}

func (x *FrameReader) inFrame(err error) error {
	return errs.New(errs.CodeProtocol, "frame %d from process %d: %s", x.frames+1, x.PID, errs.From(err).Msg)
}

// frame appends the messages of one payload. A frame in a buffer of its own is one
// message, which may keep that buffer.
func (x *FrameReader) frame(batch []Msg, h header, payload []byte, own bool) ([]Msg, error) {
	var file *os.File
	if h.flags&flagFile != 0 {
		if len(x.files) == 0 {
			return batch, x.inFrame(errs.New(errs.CodeProtocol, "it announces a file descriptor that did not come"))
		}
		file, x.files = x.files[0], x.files[1:]
	}
	var err error
	var run *Encoded // at the end of batch
	for b := payload; len(b) > 0; {
		var kind uint64
		var body []byte
		left := b
		if kind, body, b, err = Cut(payload, b); err != nil {
			break
		}
		if own && len(b) > 0 {
			err = errs.New(errs.CodeProtocol, "a frame of %d bytes must be one message, its first has %d", len(payload), len(body))
			break
		}
		if kind >= uint64(kindEnd) {
			continue // a kind of a later version
		}
		var m Msg
		if Kind(kind) == KindDone && x.Passing != 0 {
			var job ids.JobID
			if job, err = x.dec.report(body); err != nil {
				break
			}
			if job == x.Passing {
				if run == nil {
					run = &Encoded{Job: job}
					batch = append(batch, run)
				}
				run.report(left[:len(left)-len(b)], left, own)
				continue
			}
		}
		run = nil
		if m, err = x.dec.message(Kind(kind), body, own); err != nil {
			break
		}
		if batch == nil {
			batch = make([]Msg, 0, min(x.last+1, 64))
		}
		batch = append(batch, m)
		if file != nil && x.attach(m, file) {
			file = nil
		}
	}
	if file != nil {
		_ = file.Close() // of a message of a later version, or in a bad frame
	}
	if err != nil {
		return batch, x.inFrame(err)
	}
	x.frames++
	return batch, nil
}

// attach gives the frame's file to the message that carries one.
func (x *FrameReader) attach(m Msg, file *os.File) bool {
	if _, is := m.(*Welcome); is {
		if x.welcome != nil {
			_ = x.welcome.Close() // a second Welcome: the first one's file was not taken
		}
		x.welcome = file
		return true
	}
	of := FileOf(m)
	if of == nil || *of != nil { // a second one in a frame
		return false
	}
	*of = file
	return true
}

// FileOf is where a message has the descriptor that travels with it; nil: none does. That of Welcome is apart: Dial gives it.
func FileOf(m Msg) **os.File {
	switch m := m.(type) {
	case *MapFile:
		return &m.Opened
	case *OpenChannel:
		return &m.Opened
	case *Way:
		return &m.Opened
	case *HostChannel:
		return &m.Opened
	}
	return nil
}
