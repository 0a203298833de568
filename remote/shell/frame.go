package shell

import (
	"encoding/binary"

	"mobula/internal/errs"
)

// A frame is the size of its body as a little-endian uint32, its kind, and the body. The body of a message is its number, a little-endian uint64, and
// the payload; that of an acknowledgement is the number alone.
const (
	frameHeader = 5
	numberSize  = 8
)

// The kinds of frames.
const (
	kindHello   byte = iota + 1
	kindRefusal      // in place of a hello: why the connection is refused
	kindUse
	kindMessage
	kindAck
	kindEnd
)

// frame is one frame. Its body is a hello, a text, or the payload of a message.
type frame struct {
	kind   byte
	number uint64
	body   []byte
}

// size is how many bytes the frame has.
func (f *frame) size() int {
	n := frameHeader + len(f.body)
	if f.kind == kindMessage || f.kind == kindAck {
		n += numberSize
	}
	return n
}

// appendHead appends all of the frame but what a Hello or a message says.
func (f *frame) appendHead(b []byte) []byte {
	b = binary.LittleEndian.AppendUint32(b, uint32(f.size()-frameHeader))
	b = append(b, f.kind)
	if f.kind == kindMessage || f.kind == kindAck {
		b = binary.LittleEndian.AppendUint64(b, f.number)
	}
	return b
}

// parseFrame reads a frame's kind and body.
func parseFrame(kind byte, body []byte) (frame, error) {
	f := frame{kind: kind, body: body}
	switch kind {
	case kindHello, kindRefusal:
		return f, nil
	case kindUse:
		if len(body) == 0 {
			return f, nil
		}
	case kindMessage:
		if len(body) > numberSize {
			f.number, f.body = binary.LittleEndian.Uint64(body), body[numberSize:]
			return f, nil
		}
	case kindAck:
		if len(body) == numberSize {
			f.number, f.body = binary.LittleEndian.Uint64(body), nil
			return f, nil
		}
	}
	return f, errs.New(errs.CodeProtocol, "a frame of kind %d has %d bytes", kind, len(body))
}
