package codec

import (
	"encoding"
	"math/big"
	"reflect"
	"time"

	"github.com/fxamacker/cbor/v2"
	"google.golang.org/protobuf/proto"
)

// form is how the values of a type are encoded.
type form uint8

const (
	formCBOR    form = iota
	formBool         // the scalars are CBOR too, written by hand
	formInt          // any signed kind
	formUint         // any unsigned kind
	formFloat32      //
	formFloat64      //
	formRecord       // structs of these
	formText         // string kinds
	formArray        // slices of fixed-size elements
	formProto        //
	formAny          // an interface type: by its dynamic value
	formCustom       //
)

// Plan is the codec's knowledge of one Go type. It is immutable.
type Plan struct {
	reg  *Registry
	typ  reflect.Type
	name string
	form form
	meta []byte  // the Meta of every value of the type, except for formAny and formCustom
	size uintptr // formArray: bytes of one Go element; scalars: of the value

	parts []part // formRecord
	elem  Elem   // formArray
	inner []uint64

	root      *node
	custom    Codec
	protoName string // formProto: the message's full name
}

var (
	typeOfProto     = reflect.TypeFor[proto.Message]()
	typeOfTime      = reflect.TypeFor[time.Time]()
	typeOfBigInt    = reflect.TypeFor[big.Int]()
	typeOfBigFloat  = reflect.TypeFor[big.Float]()
	typeOfMarshaler = reflect.TypeFor[cbor.Marshaler]()
	typeOfBinary    = reflect.TypeFor[encoding.BinaryMarshaler]()
	typeOfTextM     = reflect.TypeFor[encoding.TextMarshaler]()
)

func (r *Registry) newPlan(t reflect.Type) *Plan {
	p := &Plan{reg: r, typ: t, name: t.String(), root: leaf}
	for _, c := range r.custom {
		if c.Match(t) {
			p.form, p.custom = formCustom, c
			return p
		}
	}
	h := Header{Codec: CBOR, Name: p.name}
	switch {
	case t.Implements(typeOfProto) && t.Kind() == reflect.Pointer:
		p.form = formProto
		p.protoName = string(reflect.Zero(t).Interface().(proto.Message).ProtoReflect().Descriptor().FullName())
		h = Header{Codec: Proto, Name: p.protoName}
	case t.Kind() == reflect.Interface:
		p.form = formAny
	case r.marshals(t):
		p.root = r.nodeOf(t)
	case formOfKind(t.Kind()) != formCBOR:
		p.form, p.size = formOfKind(t.Kind()), t.Size()
	case t.Kind() == reflect.String:
		p.form = formText
		h = Header{Codec: Text, Name: p.name}
	case t.Kind() == reflect.Slice:
		if elem, inner, ok := r.fixed(t.Elem()); ok {
			p.form, p.elem, p.inner, p.size = formArray, elem, inner, t.Elem().Size()
			h = Header{Codec: Array, Elem: elem}
			if len(inner) > 0 {
				h.Dims = append([]uint64{0}, inner...)
			}
			break
		}
		p.root = r.nodeOf(t)
	default:
		p.root = r.nodeOf(t)
		if parts := r.record(t); parts != nil && p.root.err == nil {
			p.form, p.parts = formRecord, parts
		}
	}
	p.meta = h.Append(nil)
	return p
}

// marshals tells whether the type encodes itself, so that its kind does not matter.
func (r *Registry) marshals(t reflect.Type) bool {
	if t == typeOfTime || t == typeOfBigInt || (r.refs.Is != nil && r.refs.Is(t)) {
		return true
	}
	for _, m := range []reflect.Type{typeOfMarshaler, typeOfBinary, typeOfTextM} {
		if t.Implements(m) || reflect.PointerTo(t).Implements(m) {
			return true
		}
	}
	return false
}

var elemOfKind = map[reflect.Kind]Elem{
	reflect.Bool: Bool, reflect.Int8: Int8, reflect.Int16: Int16, reflect.Int32: Int32, reflect.Int64: Int64, reflect.Int: Int64,
	reflect.Uint8: Uint8, reflect.Uint16: Uint16, reflect.Uint32: Uint32, reflect.Uint64: Uint64, reflect.Uint: Uint64,
	reflect.Float32: Float32, reflect.Float64: Float64, reflect.Complex64: Complex64, reflect.Complex128: Complex128,
}

// fixed tells whether a slice of t is dense numbers: t is a number, or an array of such.
func (r *Registry) fixed(t reflect.Type) (e Elem, inner []uint64, ok bool) {
	for t.Kind() == reflect.Array && t.Len() > 0 && len(inner) < maxDims-1 && !r.marshals(t) {
		inner = append(inner, uint64(t.Len()))
		t = t.Elem()
	}
	e, ok = elemOfKind[t.Kind()]
	if !ok || r.marshals(t) || e.Size() != t.Size() {
		return 0, nil, false
	}
	return e, inner, true
}

// Name is the Go name of the type.
func (p *Plan) Name() string { return p.name }

// Meta is shared by all values of the type; nil if it depends on the value.
func (p *Plan) Meta() []byte { return p.meta }

// MayHoldRefs tells whether a value can contain references.
func (p *Plan) MayHoldRefs() bool { return p.root.walk || p.form == formAny }

// InPlace tells whether values are read without a copy.
func (p *Plan) InPlace() bool { return p.form == formArray || p.form == formCustom }

// Width is the size in bytes of one element of a slice that is laid out raw; 0 for other types.
func (p *Plan) Width() uintptr {
	if p.form != formArray {
		return 0
	}
	return p.size
}

// Err says why no value of the type can be encoded; nil if some can.
func (p *Plan) Err() error {
	if p.root.err != nil {
		return p.root.err.at(p.name)
	}
	return nil
}

// Bounded tells whether all values of the type are small by the type alone: it has no parts of variable length and
// at most 4 KiB.
func (p *Plan) Bounded() bool {
	return p.typ.Size() <= 4<<10 && p.form != formCustom && bounded(p.typ)
}

func bounded(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Array:
		return bounded(t.Elem())
	case reflect.Struct:
		for i := range t.NumField() {
			if !bounded(t.Field(i).Type) {
				return false
			}
		}
		return true
	}
	return t.Kind() <= reflect.Complex128 && t.Kind() != reflect.Invalid
}
