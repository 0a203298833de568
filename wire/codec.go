package wire

import (
	"slices"

	"google.golang.org/protobuf/encoding/protowire"

	"mobula/internal/errs"
)

// Append appends the encoding of m, the protobuf message of the same name, to dst.
// A type that is no message of this package appends nothing.
func Append(dst []byte, m Msg) []byte {
	e := encoder{b: dst}
	e.message(m)
	return e.b
}

// An Encoder appends messages for one receiver, as a frame has them, to what is no frame: it keeps the encodings of task options, as a
// FrameWriter does. The zero value is ready. One goroutine at a time.
type Encoder struct {
	enc  encoder
	opts OptionsCache
}

// Append appends m with its kind and its length. On an error, errs.ErrInvalid, dst is what it was.
func (e *Encoder) Append(dst []byte, m Msg) ([]byte, error) {
	switch x := m.(type) {
	case nil:
		return dst, errs.New(errs.CodeInvalid, "a nil message")
	case *Encoded:
		return append(dst, x.b...), nil
	}
	e.enc.b, e.enc.opts = dst, &e.opts
	at, ext := e.enc.open(uint64(m.Kind()))
	known := e.enc.message(m)
	e.enc.close(at, ext)
	b := e.enc.b
	e.enc.b = nil
	if err := e.enc.refuse(m, known, len(b)-len(dst)); err != nil {
		return dst, err
	}
	return b, nil
}

// Decode reads the body of a message of kind k. The result shares nothing with data,
// so data may be used again. It fails with errs.ErrProtocol, saying what is wrong at
// which byte, and never panics; a message takes a bounded multiple of data's length in
// memory. A kind of a later version is an error here; a connection skips it.
func Decode(k Kind, data []byte) (Msg, error) { return new(Decoder).Decode(k, data) }

// Decode is the function Decode with the tables of one connection: task options with
// equal bytes come out as the same pointer while the table holds them.
func (d *Decoder) Decode(k Kind, data []byte) (Msg, error) {
	m, err := d.message(k, data, false)
	if m == nil && err == nil {
		err = errs.New(errs.CodeProtocol, "message kind %d is unknown to protocol version %d", k, Version)
	}
	return m, err
}

// Messages appends the messages that an Encoder wrote to dst. They share nothing with data. It fails as the function Decode does, also if a kind is of a
// later version: then it gives no messages.
func (d *Decoder) Messages(dst []Msg, data []byte) ([]Msg, error) {
	n := 0
	for b := data; len(b) > 0; n++ {
		var err error
		if _, _, b, err = Cut(data, b); err != nil {
			return nil, err
		}
	}
	dst = slices.Grow(dst, n)
	for b := data; len(b) > 0; {
		kind, body, rest, _ := Cut(data, b) // as before
		if err := known(kind); err != nil {
			return nil, err
		}
		m, err := d.message(Kind(kind), body, false)
		if err != nil {
			return nil, err
		}
		dst, b = append(dst, m), rest
	}
	return dst, nil
}

// Cut takes the first message off b, the end of a payload: its kind, its body, and what follows. It fails with errs.ErrProtocol.
func Cut(payload, b []byte) (kind uint64, body, rest []byte, err error) {
	v, n := protowire.ConsumeVarint(b)
	if n < 0 || v&7 != wtBytes || v>>3 == 0 {
		return 0, nil, nil, errs.New(errs.CodeProtocol, "no message starts at byte %d of %d", len(payload)-len(b), len(payload))
	}
	b = b[n:]
	size, n := protowire.ConsumeVarint(b)
	if n < 0 || size > uint64(len(b)-n) {
		return 0, nil, nil, errs.New(errs.CodeProtocol, "message of kind %d at byte %d of %d: it announces %d bytes, %d are left", v>>3, len(payload)-len(b), len(payload), size, len(b)-max(n, 0))
	}
	return v >> 3, b[n : n+int(size)], b[n+int(size):], nil
}

// String is the message's name in mobula.proto.
func (k Kind) String() string {
	if k > 0 && k < kindEnd {
		return kindNames[k]
	}
	return "unknown kind"
}
