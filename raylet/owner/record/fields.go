package record

import (
	"encoding/binary"
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"

	"mobula/internal/ids"
)

// What the generated codec is made of: the writers of single fields, which leave out what is zero, and the reader.

func putUint(b []byte, n protowire.Number, v uint64) []byte {
	if v == 0 {
		return b
	}
	return protowire.AppendVarint(protowire.AppendTag(b, n, protowire.VarintType), v)
}

func putInt(b []byte, n protowire.Number, v int64) []byte {
	return putUint(b, n, protowire.EncodeZigZag(v))
}

func putBool(b []byte, n protowire.Number, v bool) []byte {
	return putUint(b, n, uint64(bit(v)))
}

func putBytes(b []byte, n protowire.Number, v []byte) []byte {
	if len(v) == 0 {
		return b
	}
	return protowire.AppendBytes(protowire.AppendTag(b, n, protowire.BytesType), v)
}

func putString(b []byte, n protowire.Number, v string) []byte {
	if v == "" {
		return b
	}
	return protowire.AppendString(protowire.AppendTag(b, n, protowire.BytesType), v)
}

// Ids are written from where they are: an array that is handed on by value is copied through the stack, in pieces that
// stall on one another.

func putTask(b []byte, n protowire.Number, id *ids.TaskID) []byte {
	if *id == (ids.TaskID{}) {
		return b
	}
	return append(append(protowire.AppendTag(b, n, protowire.BytesType), ids.TaskSize), id[:]...)
}

// putObject writes an id even if it is zero, as an element of a list must be.
func putObject(b []byte, n protowire.Number, id *ids.ObjectID) []byte {
	b = append(append(protowire.AppendTag(b, n, protowire.BytesType), ids.ObjectSize), id.Task[:]...)
	return binary.BigEndian.AppendUint32(b, id.Index)
}

const nestedLen = 4 // bytes of a nested message's length

func open(b []byte, n protowire.Number) ([]byte, int) {
	b = append(protowire.AppendTag(b, n, protowire.BytesType), 0, 0, 0, 0)
	return b, len(b)
}

func shut(b []byte, at int) []byte {
	v := len(b) - at
	for i := range nestedLen {
		b[at-nestedLen+i] = byte(v>>(7*i)) | 0x80
	}
	b[at-1] &^= 0x80
	return b
}

// appendNumbers writes a packed list without its length.
func appendNumbers(b []byte, list []uint32) []byte {
	for _, n := range list {
		b = protowire.AppendVarint(b, uint64(n))
	}
	return b
}

func bit(b bool) byte {
	if b {
		return 1
	}
	return 0
}

// field is one field of a message being read.
type field struct {
	num protowire.Number
	n   uint64 // of a varint
	b   []byte // of bytes
}

// eachField calls f for every field of b. Fields of unknown numbers are f's to ignore.
func eachField(b []byte, f func(field) error) error {
	for len(b) > 0 {
		num, typ, n := protowire.ConsumeTag(b)
		if n < 0 {
			return protowire.ParseError(n)
		}
		b = b[n:]
		fd := field{num: num}
		switch typ {
		case protowire.VarintType:
			fd.n, n = protowire.ConsumeVarint(b)
		case protowire.BytesType:
			fd.b, n = protowire.ConsumeBytes(b)
		default:
			return fmt.Errorf("field %d has the wire type %d", num, typ)
		}
		if n < 0 {
			return protowire.ParseError(n)
		}
		b = b[n:]
		if err := f(fd); err != nil {
			return err
		}
	}
	return nil
}

func (f field) int() int64 { return protowire.DecodeZigZag(f.n) }

func (f field) copied() []byte { return append([]byte(nil), f.b...) }

// atMost refuses a number that what it is read into does not have.
func (f field) atMost(most uint64, name string) error {
	if f.n > most {
		return fmt.Errorf("%s %d is unknown", name, f.n)
	}
	return nil
}

func (f field) task(id *ids.TaskID) error {
	var ok bool
	if *id, ok = ids.TaskOf(f.b); !ok {
		return fmt.Errorf("a task's id of %d bytes", len(f.b))
	}
	return nil
}

func (f field) object(id *ids.ObjectID) error {
	var ok bool
	if *id, ok = ids.ObjectOf(f.b); !ok {
		return fmt.Errorf("an object's id of %d bytes", len(f.b))
	}
	return nil
}

// numbers reads a packed list.
func (f field) numbers() (out []uint32, err error) {
	for b := f.b; len(b) > 0; {
		v, n := protowire.ConsumeVarint(b)
		if n < 0 {
			return nil, protowire.ParseError(n)
		}
		out, b = append(out, uint32(v)), b[n:]
	}
	return out, nil
}

// more appends a zero element and returns it.
func more[T any](list *[]T) *T {
	*list = append(*list, *new(T))
	return &(*list)[len(*list)-1]
}
