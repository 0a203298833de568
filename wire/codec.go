package wire

import "mobula/internal/errs"

// Append appends the encoding of m, the protobuf message of the same name, to dst.
// A type that is no message of this package appends nothing.
func Append(dst []byte, m Msg) []byte {
	e := encoder{b: dst}
	e.message(m)
	return e.b
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

// String is the message's name in mobula.proto.
func (k Kind) String() string {
	if k > 0 && k < kindEnd {
		return kindNames[k]
	}
	return "unknown kind"
}
