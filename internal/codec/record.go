package codec

import (
	"encoding"
	"encoding/binary"
	"reflect"
	"slices"
	"unsafe"

	"github.com/fxamacker/cbor/v2"
)

// Structs of numbers and truth values alone are CBOR too, by hand as the scalars are: a map from the names of the fields to their values, in the order of the encoded
// names. What is not just that is left to the library.

// recordMost is how many bytes a struct may take that is encoded so.
const recordMost = 256

// part is one field of such a struct.
type part struct {
	key  []byte // encoded
	word uint64 // a key of at most 8 bytes, which is written and compared at once
	mask uint64 // of its bytes
	at   uintptr
	size uintptr
	form form
}

var unmarshalers = []reflect.Type{reflect.TypeFor[cbor.Unmarshaler](), reflect.TypeFor[encoding.BinaryUnmarshaler](), reflect.TypeFor[encoding.TextUnmarshaler]()}

// record gives the fields of a struct that is encoded by hand, in their order; nil: it is not.
func (r *Registry) record(t reflect.Type) []part {
	if t.Kind() != reflect.Struct || !r.plain(t) {
		return nil
	}
	most := 3
	parts := make([]part, 0, t.NumField())
	for i := range t.NumField() {
		f := t.Field(i)
		form := formOfKind(f.Type.Kind())
		if !f.IsExported() || f.Anonymous || f.Tag.Get("cbor") != "" || f.Tag.Get("json") != "" || form == formCBOR || !r.plain(f.Type) {
			return nil
		}
		key := append(appendHead(nil, 0x60, uint64(len(f.Name))), f.Name...)
		p := part{key: key, at: f.Offset, size: f.Type.Size(), form: form}
		if len(key) <= 8 {
			var word [8]byte
			copy(word[:], key)
			p.word, p.mask = binary.LittleEndian.Uint64(word[:]), ^uint64(0)>>(64-8*len(key))
		}
		parts = append(parts, p)
		most += len(key) + 9
	}
	if len(parts) == 0 || most > recordMost {
		return nil
	}
	slices.SortFunc(parts, func(a, b part) int { return slices.Compare(a.key, b.key) })
	return parts
}

// plain tells whether a type is encoded and decoded by its kind.
func (r *Registry) plain(t reflect.Type) bool {
	for _, u := range unmarshalers {
		if t.Implements(u) || reflect.PointerTo(t).Implements(u) {
			return false
		}
	}
	return !r.marshals(t)
}

// formOfKind is the form of a number's or a truth value's kind; formCBOR: it is another.
func formOfKind(k reflect.Kind) form {
	switch {
	case k == reflect.Bool:
		return formBool
	case k >= reflect.Int && k <= reflect.Int64:
		return formInt
	case k >= reflect.Uint && k <= reflect.Uint64:
		return formUint
	case k == reflect.Float32:
		return formFloat32
	case k == reflect.Float64:
		return formFloat64
	}
	return formCBOR
}

// appendRecord appends the struct at v.
func (p *Plan) appendRecord(v unsafe.Pointer, b []byte) []byte {
	var room [recordMost + 8]byte // a key is written as 8 bytes
	out := appendHead(room[:0], 0xa0, uint64(len(p.parts)))
	for i := range p.parts {
		f := &p.parts[i]
		if f.mask != 0 {
			out = binary.LittleEndian.AppendUint64(out, f.word)[:len(out)+len(f.key)]
		} else {
			out = append(out, f.key...)
		}
		at := unsafe.Add(v, f.at)
		if f.form != formInt {
			out, _ = appendScalar(f.form, f.size, at, out)
		} else if n := loadInt(at, f.size); uint64(n) < 24 {
			out = append(out, byte(n))
		} else {
			out = appendInt(out, n)
		}
	}
	return append(b, out...)
}

// decodeRecord decodes into the struct at out what appendRecord has written; false: it is something else, and what is at out means nothing.
func (p *Plan) decodeRecord(data []byte, out unsafe.Pointer) bool {
	n := headSize(data)
	if n == 0 {
		return false
	}
	if major, count, ok := readHead(data[:n]); !ok || major != 0xa0 || count != uint64(len(p.parts)) {
		return false
	}
	data = data[n:]
	for i := range p.parts {
		f := &p.parts[i]
		if f.mask != 0 && len(data) > 8 {
			if binary.LittleEndian.Uint64(data)&f.mask != f.word {
				return false
			}
		} else if len(data) <= len(f.key) || string(data[:len(f.key)]) != string(f.key) {
			return false
		}
		data = data[len(f.key):]
		if f.form == formInt && data[0] < 24 {
			storeInt(unsafe.Add(out, f.at), int64(data[0]), f.size)
			data = data[1:]
			continue
		}
		if n = headSize(data); n == 0 || !decodeScalar(f.form, f.size, data[:n], unsafe.Add(out, f.at)) {
			return false
		}
		data = data[n:]
	}
	return len(data) == 0
}

// headSize is how many bytes the head of an item takes, all of a number or a truth value; 0: they are not there.
func headSize(b []byte) int {
	if len(b) == 0 {
		return 0
	}
	n := 1
	if low := b[0] & 0x1f; low >= 24 && low <= 27 {
		n += 1 << (low - 24)
	}
	if n > len(b) {
		return 0
	}
	return n
}
