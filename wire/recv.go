package wire

import (
	"io"
	"os"
	"sync"

	"golang.org/x/sys/unix"
	"google.golang.org/protobuf/encoding/protowire"

	"mobula/internal/errs"
)

const (
	readBuffer = frameTarget + headerSize // holds any frame that is not large
	bigStart   = 256 << 10                // a large frame's buffer at first; it grows as bytes arrive
)

// buffers are shared by all connections: an idle one holds none.
var buffers = sync.Pool{New: func() any { return new([readBuffer]byte) }}

// A receiver turns the bytes of one connection into messages.
type receiver struct {
	dec   Decoder
	limit int // of a frame's payload

	box  *[readBuffer]byte // nil: nothing is buffered
	r, w int               // box[r:w] is not yet consumed

	big     []byte // a large frame's payload as far as it is here; nil: none
	bigSize int
	bigHead header

	files   []*os.File // came with bytes whose frame is not yet complete
	welcome *os.File   // came with a Welcome

	early  []Msg  // came together with the first message of the handshake
	frames uint64 // complete ones so far, for error texts
	fail   error  // reported once the messages before it are
	last   int    // messages of the last batch: a hint

	hot  hot
	soon bool // a read that finds nothing for hotWait returns

	conn *Conn
	rcv  recver
	fn   func(fd uintptr) bool
	got  int
	err  error
}

func (x *receiver) init(c *Conn, files bool) {
	x.conn, x.limit, x.fn = c, MaxFrame, x.read
	x.hot.may = files // it was dialled
	if files {
		x.rcv.ctrl = make([]byte, unix.CmsgSpace(4*maxFiles))
	}
}

// Recv returns the next messages: at least one, all that one read brought, in the order
// sent. It waits for them. The slice and the messages are the caller's.
//
// io.EOF: the other side closed between two frames. errs.ErrProtocol: it sent something
// malformed; the messages before that were returned first. The connection should be
// closed after any error.
func (c *Conn) Recv() ([]Msg, error) {
	x := &c.rx
	if batch := x.early; batch != nil {
		x.early = nil
		return batch, nil
	}
	if x.fail != nil {
		return nil, x.fail
	}
	for {
		batch, err := x.parse(nil)
		if err != nil {
			x.fail = c.over(err)
			x.release()
		}
		if len(batch) > 0 {
			x.shed()
			x.last = len(batch)
			x.hot.came(len(batch))
			c.recvMsgs.Add(uint64(len(batch)))
			return batch, nil
		}
		if x.fail != nil {
			return nil, x.fail
		}
		if err := x.more(); err != nil {
			x.fail = c.over(err)
			x.release()
			return nil, x.fail
		}
		if x.soon && x.got < 0 {
			return nil, nil
		}
	}
}

// over is the error of a connection of which nothing more is read.
func (c *Conn) over(err error) error {
	err = c.disconnected("read", err)
	if c.failure() != nil {
		c.shut() // a broken pipe has left it open
	}
	return err
}

// recvSoon is Recv that returns nothing when nothing came for hotWait or, of a connection that is
// not hot, when nothing is there.
func (c *Conn) recvSoon() ([]Msg, error) {
	c.rx.soon = true
	batch, err := c.Recv()
	c.rx.soon = false
	return batch, err
}

// shed gives an empty buffer back: nothing is held between two messages.
func (x *receiver) shed() {
	if x.r == x.w && x.box != nil {
		buffers.Put(x.box)
		x.box, x.r, x.w = nil, 0, 0
	}
}

// release gives back what an ended connection holds.
func (x *receiver) release() {
	x.hot.leave()
	closeFiles(x.files)
	if x.welcome != nil {
		_ = x.welcome.Close() // nobody took it
	}
	x.files, x.welcome, x.big = nil, nil, nil
	if x.box != nil {
		buffers.Put(x.box)
		x.box = nil
	}
}

// more reads once, into the large frame if there is one.
func (x *receiver) more() error {
	x.got, x.err = 0, nil
	if err := x.conn.sock.raw.Read(x.fn); err != nil {
		return err
	}
	if x.err != nil {
		return x.err
	}
	switch {
	case x.got > 0:
		x.conn.recvBytes.Add(uint64(x.got))
	case x.got == 0:
		return x.ended()
	}
	return nil
}

// ended is the error of a stream that ends here.
func (x *receiver) ended() error {
	switch have := x.w - x.r; {
	case x.big != nil:
		return errs.New(errs.CodeProtocol, "frame %d is truncated: %d of %d bytes came before the end", x.frames+1, len(x.big), x.bigSize)
	case have >= headerSize:
		h, _ := parseHeader(x.box[x.r:x.w], x.limit) // was checked when it came
		return errs.New(errs.CodeProtocol, "frame %d is truncated: %d of %d bytes came before the end", x.frames+1, have-headerSize, h.size)
	case have > 0:
		return errs.New(errs.CodeProtocol, "frame %d is truncated: %d of %d bytes of its header came before the end", x.frames+1, have, headerSize)
	}
	return io.EOF
}

// read is called by the poller whenever there may be bytes.
func (x *receiver) read(uintptr) bool {
	s := x.conn.sock
	if x.hot.heap {
		if x.err = x.hot.cool(s); x.err != nil {
			return true
		}
	}
	if x.hot.on {
		x.hot.turn()
	}
	for {
		n, files, err := x.rcv.recv(uintptr(s.fd), x.room(), x.hot.on)
		switch err {
		case nil:
			x.files = append(x.files, files...)
			if len(x.files) > maxFiles {
				x.err = errs.New(errs.CodeProtocol, "%d file descriptors without a frame that announces them", len(x.files))
			}
			x.got = n
			x.put(n)
			x.hot.waited(s)
			return true
		case unix.EINTR:
		case unix.EAGAIN:
			if x.hot.on {
				if x.err = x.hot.cool(s); x.err != nil {
					return true
				}
				if !x.soon {
					continue // the poller is told only of what comes from now on
				}
			}
			x.shed()
			if x.soon {
				x.got = -1
				return true
			}
			x.hot.since = now()
			return false
		default:
			if _, ok := err.(unix.Errno); ok {
				err = os.NewSyscallError("recvmsg", err)
			}
			x.err = err
			return true
		}
	}
}

// put says that n bytes were written to room.
func (x *receiver) put(n int) {
	if x.big != nil {
		x.big = x.big[:len(x.big)+n]
	} else {
		x.w += n
	}
}

// room is where the next bytes go.
func (x *receiver) room() []byte {
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

// parse appends the messages of every complete frame.
func (x *receiver) parse(batch []Msg) ([]Msg, error) {
	if x.big != nil {
		if len(x.big) < x.bigSize {
			return batch, nil
		}
		payload := x.big
		x.big = nil
		return x.frame(batch, x.bigHead, payload, true)
	}
	for x.w-x.r >= headerSize {
		h, err := parseHeader(x.box[x.r:x.w], x.limit)
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

func (x *receiver) inFrame(err error) error {
	return errs.New(errs.CodeProtocol, "frame %d from process %d: %s", x.frames+1, x.conn.peer.PID, errs.From(err).Msg)
}

// frame appends the messages of one payload. A frame in a buffer of its own is one
// message, which may keep that buffer.
func (x *receiver) frame(batch []Msg, h header, payload []byte, own bool) ([]Msg, error) {
	var file *os.File
	if h.flags&flagFile != 0 {
		if len(x.files) == 0 {
			return batch, x.inFrame(errs.New(errs.CodeProtocol, "it announces a file descriptor that did not come"))
		}
		file, x.files = x.files[0], x.files[1:]
	}
	var err error
	for b := payload; len(b) > 0; {
		v, n := protowire.ConsumeVarint(b)
		if n < 0 || v&7 != wtBytes || v>>3 == 0 {
			err = errs.New(errs.CodeProtocol, "no message starts at byte %d of %d", len(payload)-len(b), len(payload))
			break
		}
		b = b[n:]
		size, n := protowire.ConsumeVarint(b)
		if n < 0 || size > uint64(len(b)-n) {
			err = errs.New(errs.CodeProtocol, "message of kind %d at byte %d of %d: it announces %d bytes, %d are left", v>>3, len(payload)-len(b), len(payload), size, len(b)-max(n, 0))
			break
		}
		body := b[n : n+int(size)]
		b = b[n+int(size):]
		if own && len(b) > 0 {
			err = errs.New(errs.CodeProtocol, "a frame of %d bytes must be one message, its first has %d", len(payload), size)
			break
		}
		if v>>3 >= uint64(kindEnd) {
			continue // a kind of a later version
		}
		var m Msg
		if m, err = x.dec.message(Kind(v>>3), body, own); err != nil {
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
func (x *receiver) attach(m Msg, file *os.File) bool {
	switch m := m.(type) {
	case *MapFile:
		m.Opened = file
	case *Welcome:
		if x.welcome != nil {
			_ = x.welcome.Close() // a second Welcome: the first one's file was not taken
		}
		x.welcome = file
	default:
		return false
	}
	return true
}
