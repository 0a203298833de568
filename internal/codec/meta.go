package codec

import (
	"encoding/binary"
	"strconv"
	"strings"

	"mobula/internal/errs"
	"mobula/wire"
)

// ID numbers a codec. It is part of the format: its meaning never changes.
type ID uint8

// The codecs. Those from FirstCustom on are for Registry.Add.
const (
	Array ID = iota + 1
	Text
	CBOR
	Proto
	// Pickle is a Python object; only Python reads it. The dimensions, where there are any, are the length of the
	// pickle stream and the number of its buffers, which lie behind it (python/mobula/_value.py). The name is its class.
	Pickle
	// Arrow is an Arrow IPC stream; the name is "arrow.RecordBatch" or "arrow.Table". Package arrowipc adds the codec.
	Arrow
	FirstCustom ID = 32
)

// Elem is the element type of an Array.
type Elem uint8

// The element types, all little endian, dense.
const (
	Bool Elem = iota + 1
	Int8
	Int16
	Int32
	Int64
	Uint8
	Uint16
	Uint32
	Uint64
	Float32
	Float64
	Complex64
	Complex128
	elemEnd
)

var elems = [elemEnd]struct {
	name string
	size uintptr
}{
	Bool: {"bool", 1}, Int8: {"int8", 1}, Int16: {"int16", 2}, Int32: {"int32", 4}, Int64: {"int64", 8},
	Uint8: {"uint8", 1}, Uint16: {"uint16", 2}, Uint32: {"uint32", 4}, Uint64: {"uint64", 8},
	Float32: {"float32", 4}, Float64: {"float64", 8}, Complex64: {"complex64", 8}, Complex128: {"complex128", 16},
}

// String is the portable name, as Go and NumPy spell it.
func (e Elem) String() string {
	if e < elemEnd && e > 0 {
		return elems[e].name
	}
	return "element type " + strconv.Itoa(int(e))
}

// Size is in bytes; 0 for an unknown element type.
func (e Elem) Size() uintptr {
	if e < elemEnd {
		return elems[e].size
	}
	return 0
}

const (
	version = 1
	maxDims = 8
)

// Header is a decoded Meta. Its encoding: version 1, codec, element type, number of
// dimensions, each dimension as uvarint, and the type's name to the end.
type Header struct {
	Codec ID
	Elem  Elem // of an Array
	// Dims is the shape of an Array in row-major order. None means one dimension; a leading 0 stands for the
	// dimension that follows from the size of the data.
	Dims []uint64
	Name string // the type's name, for errors and for finding the way back: "float64", "app.Row"
}

// Append adds the encoded header to b.
func (h Header) Append(b []byte) []byte {
	b = append(b, version, byte(h.Codec), byte(h.Elem), byte(len(h.Dims)))
	for _, d := range h.Dims {
		b = binary.AppendUvarint(b, d)
	}
	name := h.Name
	if room := wire.MaxMeta - len(b); len(name) > room {
		name = name[:room] // it is only for people
	}
	return append(b, name...)
}

// ParseHeader reads a Meta; its error is errs.ErrNotDecodable.
func ParseHeader(meta []byte) (Header, error) {
	var h Header
	if len(meta) < 4 {
		return h, errs.New(errs.CodeNotDecodable, "value header of %d bytes, want at least 4", len(meta))
	}
	if meta[0] != version {
		return h, errs.New(errs.CodeNotDecodable, "value header version %d, this build reads %d", meta[0], version)
	}
	h.Codec, h.Elem = ID(meta[1]), Elem(meta[2])
	n, rest := int(meta[3]), meta[4:]
	if n > maxDims {
		return h, errs.New(errs.CodeNotDecodable, "value of %d dimensions, at most %d are allowed", n, maxDims)
	}
	for range n {
		d, used := binary.Uvarint(rest)
		if used <= 0 {
			return h, errs.New(errs.CodeNotDecodable, "value header ends inside its dimensions")
		}
		h.Dims, rest = append(h.Dims, d), rest[used:]
	}
	h.Name = string(rest)
	return h, nil
}

// String describes the stored type for a person.
func (h Header) String() string {
	switch {
	case h.Codec == Array && len(h.Dims) <= 1:
		return "[]" + h.Elem.String()
	case h.Codec == Array:
		var b strings.Builder
		for i, d := range h.Dims {
			if i == 0 && d == 0 {
				b.WriteString("[]")
				continue
			}
			b.WriteString("[" + strconv.FormatUint(d, 10) + "]")
		}
		return b.String() + h.Elem.String()
	case h.Codec == Pickle:
		return "a pickled Python object of type " + h.Name
	case h.Name != "":
		return h.Name
	case h.Codec == Text:
		return "string"
	}
	return "codec " + strconv.Itoa(int(h.Codec))
}
