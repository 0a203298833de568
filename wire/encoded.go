package wire

import (
	"encoding/binary"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"

	"mobula/internal/errs"
	"mobula/internal/ids"
)

// Encoded is messages that are passed on as they came, in one piece: who has them between sender and receiver does not read them.
type Encoded struct {
	Job ids.JobID // of reports (Done): whose tasks they are of; 0: they are for a client

	b []byte // each with kind and length, as in a frame
	n int    // how many there are
}

// Kind is none: the messages have their own.
func (*Encoded) Kind() Kind { return 0 }

// PassOn appends to x, which may be nil, what an Encoder wrote. It shares nothing with data. It fails as Decoder.Messages does where something is
// no message; what is wrong inside of one its receiver finds.
func PassOn(x *Encoded, data []byte) (*Encoded, error) {
	n := 0
	for b := data; len(b) > 0; n++ {
		kind, _, rest, err := Cut(data, b)
		if err == nil {
			err = known(kind)
		}
		if err != nil {
			return nil, err
		}
		b = rest
	}
	if x == nil {
		x = new(Encoded)
	}
	x.b, x.n = append(slices.Grow(x.b, len(data)), data...), x.n+n
	return x, nil
}

// Messages decodes them, for who reads them after all. Those of PassOn may be malformed: errs.ErrProtocol.
func (x *Encoded) Messages() ([]Msg, error) { return new(Decoder).Messages(nil, x.b) }

// Count is how many messages there are, those passed on as they came among them.
func Count(msgs []Msg) (n int) {
	for _, m := range msgs {
		if x, ok := m.(*Encoded); ok {
			n += x.n
		} else {
			n++
		}
	}
	return n
}

// report notes a Done that is passed on: one is the message with kind and length, the beginning of left. own: left is given up.
func (x *Encoded) report(one, left []byte, own bool) {
	switch x.n++; {
	case own:
		x.b = one // there is no other
		return
	case x.b == nil:
		x.b = make([]byte, 0, len(left)) // more may follow
	}
	x.b = append(x.b, one...)
}

// appendEncoded appends the messages to a frame or frames.
func (o *FrameWriter) appendEncoded(x *Encoded) error {
	for b := x.b; len(b) > 0; {
		_, body, rest, err := Cut(x.b, b)
		if err != nil {
			return err
		}
		at := o.begin()
		o.enc.b = append(o.enc.b, b[:len(b)-len(rest)-len(body)]...)
		o.enc.raw(body)
		o.end(at, nil)
		b = rest
	}
	return nil
}

// ShiftTimes adds a difference of clocks to every time in messages for a client. Zero is no time, and stays.
func (x *Encoded) ShiftTimes(by int64) {
	const (
		tasks     = 2<<3 | wtBytes // of an Exec
		spec      = 1<<3 | wtBytes // of a task
		deadline  = 8<<3 | wtFixed64
		submitted = 11<<3 | wtFixed64
	)
	for b := x.b; len(b) > 0; {
		kind, body, rest, err := Cut(x.b, b)
		if err != nil {
			return // it was looked at before
		}
		if b = rest; Kind(kind) != KindExec {
			continue
		}
		for tag, task := range fields(body) {
			if tag != tasks {
				continue
			}
			for tag, s := range fields(task) {
				if tag != spec {
					continue
				}
				for tag, at := range fields(s) {
					if tag == deadline || tag == submitted {
						if t := binary.LittleEndian.Uint64(at); t != 0 {
							binary.LittleEndian.PutUint64(at, t+uint64(by))
						}
					}
				}
			}
		}
	}
}

// fields gives the fields of a message, each by tag and value as it lies there, up to the first that is malformed.
func fields(b []byte) func(yield func(tag uint64, value []byte) bool) {
	return func(yield func(uint64, []byte) bool) {
		for len(b) > 0 {
			tag, used := protowire.ConsumeVarint(b)
			if used < 0 {
				return
			}
			b = b[used:]
			n := valueLen(b, tag)
			if n < 0 || n > len(b) {
				return
			}
			value := b[:n]
			if b = b[n:]; tag&7 == wtBytes {
				_, used := protowire.ConsumeVarint(value)
				value = value[used:]
			}
			if !yield(tag, value) {
				return
			}
		}
	}
}

// known refuses a message of a later version.
func known(kind uint64) error {
	if kind >= uint64(kindEnd) {
		return errs.New(errs.CodeVersion, "message kind %d is unknown to protocol version %d", kind, Version)
	}
	return nil
}
