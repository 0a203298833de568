package internode

import (
	"reflect"

	"mobula/internal/errs"
	"mobula/internal/protofield"
	"mobula/wire"
)

// MaxPayload is the limit of a payload, in bytes. What is larger neither side sends nor reads.
const MaxPayload = 64 << 20

// An Encoder makes the payloads for one other node. It keeps the encodings of task options, which repeat. The zero value is ready. One goroutine at a time.
type Encoder struct {
	// Agreed is the version that both nodes speak; 0: none was agreed yet. What it lacks is refused.
	Agreed uint32

	local wire.Encoder
	since map[reflect.Type]uint32 // of a test; nil: the package's
}

// Append appends messages to a payload. On an error, errs.ErrInvalid, or errs.ErrVersion for what the other node does not know, b is what it was, and the error names
// the message that cannot be sent.
func (e *Encoder) Append(b []byte, msgs ...Msg) ([]byte, error) {
	out := b
	for i, m := range msgs {
		if m == nil {
			return b, errs.New(errs.CodeInvalid, "message %d of %d is nil", i+1, len(msgs))
		}
		if inside, ok := inSchema(m); !ok {
			return b, errs.New(errs.CodeInvalid, "%v: a %T does not go between nodes", m.Kind(), inside)
		}
		if err := e.lacks(m); err != nil {
			return b, err
		}
		var at int
		out, at = protofield.Open(out, protofield.Number(m.Kind()))
		var err error
		if out, err = e.body(out, m); err != nil {
			return b, errs.New(errs.CodeInvalid, "%v: %s", m.Kind(), errs.From(err).Msg)
		}
		if len(out) > MaxPayload {
			return b, errs.New(errs.CodeInvalid, "%v of %d bytes in a payload of %d, the limit is %d", m.Kind(), len(out)-at, len(out), MaxPayload)
		}
		out = protofield.Shut(out, at)
	}
	return out, nil
}

// A Decoder reads the payloads of one other node: task options with equal bytes come out as the same pointer while its table holds them. The zero value is
// ready. One goroutine at a time.
type Decoder struct {
	// Agreed is the version that both nodes speak; the error of an unknown message names it.
	Agreed uint32

	local wire.Decoder
}

// Decode gives the messages of a payload to f, in order, until f returns an error, which is then its own.
//
// What is decoded shares nothing with the payload, and takes at most a bounded multiple of its length in memory.
//
// errs.ErrProtocol: the payload is malformed, at the byte that the error names; f had the messages before. errs.ErrVersion, which is also
// errs.ErrProtocol: a message that this build does not know.
func (d *Decoder) Decode(payload []byte, f func(Msg) error) error {
	if len(payload) > MaxPayload {
		return errs.New(errs.CodeProtocol, "a payload of %d bytes, the limit is %d", len(payload), MaxPayload)
	}
	for b := payload; len(b) > 0; {
		kind, body, rest, err := wire.Cut(payload, b)
		if err != nil {
			return err
		}
		if kind >= uint64(kindEnd) {
			return errs.New(errs.CodeVersion, "message kind %d at byte %d of %d is unknown: the nodes agreed on version %d, this one speaks %d to %d",
				kind, len(payload)-len(b), len(payload), d.Agreed, MinVersion, Version)
		}
		m, err := d.read(Kind(kind), body)
		if err != nil {
			return malformed(err, "%v at byte %d of %d", Kind(kind), len(payload)-len(b), len(payload))
		}
		if err := f(m); err != nil {
			return err
		}
		b = rest
	}
	return nil
}

// String is the message's name in internode.proto.
func (k Kind) String() string {
	if k > 0 && k < kindEnd {
		return kindNames[k]
	}
	return "unknown kind"
}
