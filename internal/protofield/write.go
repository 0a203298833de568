package protofield

import (
	"encoding/binary"
	"maps"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"

	"mobula/internal/ids"
)

// Number is a field's.
type Number = protowire.Number

// PutUint writes a number that is not negative.
func PutUint(b []byte, n Number, v uint64) []byte {
	if v == 0 {
		return b
	}
	return protowire.AppendVarint(protowire.AppendTag(b, n, protowire.VarintType), v)
}

// PutInt writes a number that may be negative.
func PutInt(b []byte, n Number, v int64) []byte {
	return PutUint(b, n, protowire.EncodeZigZag(v))
}

// PutFixed64 writes a number that has all of its bits, as a hash does.
func PutFixed64(b []byte, n Number, v uint64) []byte {
	if v == 0 {
		return b
	}
	return protowire.AppendFixed64(protowire.AppendTag(b, n, protowire.Fixed64Type), v)
}

// PutBool writes a flag.
func PutBool(b []byte, n Number, v bool) []byte {
	return PutUint(b, n, protowire.EncodeBool(v))
}

// PutBytes writes bytes.
func PutBytes(b []byte, n Number, v []byte) []byte {
	if len(v) == 0 {
		return b
	}
	return protowire.AppendBytes(protowire.AppendTag(b, n, protowire.BytesType), v)
}

// PutString writes a text.
func PutString(b []byte, n Number, v string) []byte {
	if v == "" {
		return b
	}
	return protowire.AppendString(protowire.AppendTag(b, n, protowire.BytesType), v)
}

// PutStrings writes a list of texts.
func PutStrings(b []byte, n Number, list []string) []byte {
	for _, v := range list {
		b = protowire.AppendString(protowire.AppendTag(b, n, protowire.BytesType), v)
	}
	return b
}

// PutMap writes texts by their names, in the order of these.
func PutMap(b []byte, n Number, m map[string]string) []byte {
	for _, name := range slices.Sorted(maps.Keys(m)) {
		var at int
		b, at = Open(b, n)
		b = PutString(b, 1, name)
		b = PutString(b, 2, m[name])
		b = Shut(b, at)
	}
	return b
}

// PutNumbers writes a packed list.
func PutNumbers[T ~uint32](b []byte, n Number, list []T) []byte {
	if len(list) == 0 {
		return b
	}
	b, at := Open(b, n)
	for _, v := range list {
		b = protowire.AppendVarint(b, uint64(v))
	}
	return Shut(b, at)
}

// Ids are written from where they are: an array that is handed on by value is copied through the stack, in pieces that
// stall on one another.

// PutTask writes a task's id.
func PutTask(b []byte, n Number, id *ids.TaskID) []byte {
	if *id == (ids.TaskID{}) {
		return b
	}
	return append(append(protowire.AppendTag(b, n, protowire.BytesType), ids.TaskSize), id[:]...)
}

// PutObject writes an id even if it is zero, as an element of a list must be.
func PutObject(b []byte, n Number, id *ids.ObjectID) []byte {
	b = append(append(protowire.AppendTag(b, n, protowire.BytesType), ids.ObjectSize), id.Task[:]...)
	return binary.BigEndian.AppendUint32(b, id.Index)
}

const nestedLen = 4 // bytes of a nested message's length

// Open begins a message inside another, and gives the place to Shut it with.
func Open(b []byte, n Number) ([]byte, int) {
	b = append(protowire.AppendTag(b, n, protowire.BytesType), 0, 0, 0, 0)
	return b, len(b)
}

// Shut ends a message that Open has begun. It has less than 256 MiB.
func Shut(b []byte, at int) []byte {
	v := len(b) - at
	for i := range nestedLen {
		b[at-nestedLen+i] = byte(v>>(7*i)) | 0x80
	}
	b[at-1] &^= 0x80
	return b
}
