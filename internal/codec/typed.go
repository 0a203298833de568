package codec

import (
	"bytes"
	"reflect"
	"unsafe"

	"mobula/internal/ids"
	"mobula/wire"
)

// Type encodes and decodes values of type T.
type Type[T any] struct{ *Plan }

// Of gives the codec of a type, made on first use.
func Of[T any](r *Registry) Type[T] { return Type[T]{r.PlanOf(reflect.TypeFor[T]())} }

// Encoded is a value ready to be sent or written.
type Encoded struct {
	Meta []byte
	Size int // bytes of the data
	Refs []ids.ObjectID

	// Inline is the data, if it is small or had to be made on the heap; for a large raw value it is the value's
	// own memory, which must not change until it is written.
	Inline []byte
	Fill   func(dst []byte) // else: writes exactly Size bytes; it reads the value likewise
}

// Value is an Encoded whose data is Inline, as a message carries it.
func (e *Encoded) Value() wire.Value {
	return wire.Value{Meta: e.Meta, Data: e.Inline, Refs: e.Refs}
}

// Encode encodes *v, which does not escape. A value of at most inline bytes, and any that is not raw, is appended
// to scratch (of length 0) and returned as Inline.
func (t Type[T]) Encode(v *T, scratch []byte, inline int) (Encoded, error) {
	p := t.Plan
	if data, ok := p.appendScalar(unsafe.Pointer(v), scratch); ok {
		return Encoded{Meta: p.meta, Size: len(data), Inline: data}, nil
	}
	switch p.form {
	case formText:
		s := *(*string)(unsafe.Pointer(v))
		return p.raw(unsafe.Pointer(unsafe.StringData(s)), len(s), scratch, inline), nil
	case formArray:
		s := *(*sliceHeader)(unsafe.Pointer(v))
		return p.raw(s.data, s.len*int(p.size), scratch, inline), nil
	}
	c := new(T) // reflection makes its operand escape, so only here
	*c = *v
	return p.encode(reflect.ValueOf(c).Elem(), scratch, inline)
}

// AppendSmall appends the data of a scalar, or of a small struct of these, to b; ok is false, and b unchanged, for any other type.
func (t Type[T]) AppendSmall(b []byte, v *T) (out []byte, ok bool) {
	return t.appendScalar(unsafe.Pointer(v), b)
}

func (p *Plan) appendScalar(v unsafe.Pointer, b []byte) ([]byte, bool) {
	if p.form == formRecord {
		return p.appendRecord(v, b), true
	}
	return appendScalar(p.form, p.size, v, b)
}

func appendScalar(f form, size uintptr, v unsafe.Pointer, b []byte) ([]byte, bool) {
	switch f {
	case formFloat64:
		return appendFloat64(b, *(*float64)(v)), true
	case formInt:
		return appendInt(b, loadInt(v, size)), true
	case formBool:
		return appendBool(b, *(*bool)(v)), true
	case formUint:
		return appendHead(b, 0, loadUint(v, size)), true
	case formFloat32:
		return appendFloat32(b, *(*float32)(v)), true
	}
	return b, false
}

// Decode decodes a value. With alias, slices of numbers and bytes share v.Data, read-only; without,
// the result is the caller's own. b may be nil for types without references.
func (t Type[T]) Decode(v wire.Value, alias bool, b Binder) (T, error) {
	var out T
	p := t.Plan
	if bytes.Equal(v.Meta, p.meta) {
		if p.decodeScalar(v.Data, unsafe.Pointer(&out)) {
			return out, nil
		}
		switch p.form {
		case formText:
			*(*string)(unsafe.Pointer(&out)) = string(v.Data)
			return out, nil
		case formArray:
			if len(v.Data)%int(p.size) == 0 && p.elem != Bool {
				*(*sliceHeader)(unsafe.Pointer(&out)) = p.slice(v.Data, alias)
				return out, nil
			}
		}
	}
	dst := new(T)
	err := p.decode(v, alias, reflect.ValueOf(dst).Elem(), b)
	return *dst, err
}

func (p *Plan) decodeScalar(data []byte, out unsafe.Pointer) bool {
	if p.form == formRecord {
		return p.decodeRecord(data, out)
	}
	return decodeScalar(p.form, p.size, data, out)
}

func decodeScalar(f form, size uintptr, data []byte, out unsafe.Pointer) bool {
	switch f {
	case formFloat64:
		f, ok := readFloat(data)
		if ok {
			*(*float64)(out) = f
		}
		return ok
	case formInt:
		n, ok := readInt(data, size)
		if ok {
			storeInt(out, n, size)
		}
		return ok
	case formBool:
		if len(data) == 1 && data[0]&^1 == 0xf4 {
			*(*bool)(out) = data[0] == 0xf5
			return true
		}
	case formUint:
		n, ok := readUint(data, size)
		if ok {
			storeInt(out, int64(n), size)
		}
		return ok
	case formFloat32:
		f, ok := readFloat(data)
		if ok && (float64(float32(f)) == f || f != f) {
			*(*float32)(out) = float32(f)
			return true
		}
	}
	return false
}

func loadInt(p unsafe.Pointer, size uintptr) int64 {
	switch size {
	case 1:
		return int64(*(*int8)(p))
	case 2:
		return int64(*(*int16)(p))
	case 4:
		return int64(*(*int32)(p))
	}
	return *(*int64)(p)
}

func loadUint(p unsafe.Pointer, size uintptr) uint64 {
	switch size {
	case 1:
		return uint64(*(*uint8)(p))
	case 2:
		return uint64(*(*uint16)(p))
	case 4:
		return uint64(*(*uint32)(p))
	}
	return *(*uint64)(p)
}

func storeInt(p unsafe.Pointer, n int64, size uintptr) {
	switch size {
	case 1:
		*(*int8)(p) = int8(n)
	case 2:
		*(*int16)(p) = int16(n)
	case 4:
		*(*int32)(p) = int32(n)
	default:
		*(*int64)(p) = n
	}
}
