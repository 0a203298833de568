package codec

import (
	"bytes"
	"fmt"
	"reflect"
	"unsafe"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"mobula/internal/errs"
	"mobula/wire"
)

func stringData(s string) unsafe.Pointer { return unsafe.Pointer(unsafe.StringData(s)) }

// decode is the general case, for any pair of stored and wanted type; dst is addressable and of type p.typ.
func (p *Plan) decode(v wire.Value, alias bool, dst reflect.Value, b Binder) error {
	h, err := ParseHeader(v.Meta)
	if err != nil {
		return &errs.Error{Code: errs.CodeNotDecodable, Msg: "want " + p.name + ": " + err.Error()}
	}
	if h.Codec == CBOR && bytes.Equal(v.Data, null) {
		dst.SetZero()
		return nil
	}
	switch p.form {
	case formAny:
		return p.decodeAny(h, v, alias, dst, b)
	case formCustom:
		if h.Codec != p.custom.ID() {
			return p.mismatch(h, "")
		}
		return p.decodeCustom(h, v.Data, alias, dst)
	case formProto:
		if h.Codec != Proto || h.Name != p.protoName {
			return p.mismatch(h, "")
		}
		return p.decodeProto(h, v.Data, dst)
	case formArray:
		if h.Codec == CBOR { // a list of numbers written elsewhere
			return p.decodeCBOR(h, v.Data, dst, b)
		}
		if h.Codec != Array {
			return p.mismatch(h, "")
		}
		if why := p.arrayFits(h, v.Data); why != "" {
			return p.mismatch(h, why)
		}
		*(*sliceHeader)(dst.Addr().UnsafePointer()) = p.slice(v.Data, alias)
		return nil
	case formText:
		if h.Codec != Text {
			return p.mismatch(h, "")
		}
		dst.SetString(string(v.Data))
		return nil
	}
	if h.Codec != CBOR {
		return p.mismatch(h, "")
	}
	return p.decodeCBOR(h, v.Data, dst, b)
}

func (p *Plan) decodeCustom(h Header, data []byte, alias bool, dst reflect.Value) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = p.mismatch(h, fmt.Sprintf("decoder panicked: %v", r))
		}
	}()
	out, err := p.custom.Decode(h, data, alias, p.typ)
	if err != nil {
		return &errs.Error{Code: errs.CodeNotDecodable, Msg: "value is " + h.String() + ", want " + p.name + ": " + err.Error()}
	}
	rv := reflect.ValueOf(out)
	if !rv.IsValid() || !rv.Type().AssignableTo(p.typ) {
		return p.mismatch(h, fmt.Sprintf("its codec gave a %T", out))
	}
	dst.Set(rv)
	return nil
}

func (p *Plan) decodeProto(h Header, data []byte, dst reflect.Value) error {
	m := reflect.Zero(p.typ).Interface().(proto.Message).ProtoReflect().New().Interface()
	if err := proto.Unmarshal(data, m); err != nil {
		return p.mismatch(h, err.Error())
	}
	dst.Set(reflect.ValueOf(m))
	return nil
}

// decodeAny gives a value of the type that the header describes: a slice of the element type, a string, a message,
// or the types of plain CBOR (int64, float64, []any, map[string]any; map[any]any if a key is no text ...).
func (p *Plan) decodeAny(h Header, v wire.Value, alias bool, dst reflect.Value, b Binder) error {
	var t reflect.Type
	switch h.Codec {
	case Array:
		if t = sliceOf[h.Elem%elemEnd]; h.Elem >= elemEnd || t == nil {
			return p.mismatch(h, "unknown element type")
		}
	case Text:
		t = reflect.TypeFor[string]()
	case Proto:
		mt, err := protoregistry.GlobalTypes.FindMessageByName(protoreflect.FullName(h.Name))
		if err != nil {
			return p.mismatch(h, err.Error())
		}
		t = reflect.TypeOf(mt.Zero().Interface())
	case CBOR:
		return p.decodeCBORAny(h, v.Data, dst, b)
	default:
		return p.decodeAnyCustom(h, v.Data, alias, dst)
	}
	out := reflect.New(t).Elem()
	if err := p.reg.PlanOf(t).decode(v, alias, out, b); err != nil {
		return err
	}
	if !t.AssignableTo(p.typ) {
		return p.mismatch(h, "")
	}
	dst.Set(out)
	return nil
}

func (p *Plan) decodeCBORAny(h Header, data []byte, dst reflect.Value, b Binder) error {
	var out any
	holder := reflect.ValueOf(&out).Elem()
	generic := p.reg.PlanOf(holder.Type())
	q := *generic
	q.root = p.reg.node(holder.Type())
	if err := q.decodeCBOR(h, data, holder, b); err != nil {
		return err
	}
	if out == nil {
		dst.SetZero()
		return nil
	}
	if rv := reflect.ValueOf(out); rv.Type().AssignableTo(p.typ) {
		dst.Set(rv)
		return nil
	}
	return p.mismatch(h, fmt.Sprintf("it holds a %T", out))
}

func (p *Plan) decodeAnyCustom(h Header, data []byte, alias bool, dst reflect.Value) error {
	p.reg.mu.Lock()
	custom := p.reg.custom
	p.reg.mu.Unlock()
	for _, c := range custom {
		if c.ID() == h.Codec {
			q := *p
			q.custom = c
			return q.decodeCustom(h, data, alias, dst)
		}
	}
	if h.Codec == Arrow {
		return p.mismatch(h, `import _ "mobula/arrowipc" to read it`)
	}
	return p.mismatch(h, "no such codec is registered")
}

var sliceOf = [elemEnd]reflect.Type{
	Bool: reflect.TypeFor[[]bool](), Int8: reflect.TypeFor[[]int8](), Int16: reflect.TypeFor[[]int16](),
	Int32: reflect.TypeFor[[]int32](), Int64: reflect.TypeFor[[]int64](), Uint8: reflect.TypeFor[[]uint8](),
	Uint16: reflect.TypeFor[[]uint16](), Uint32: reflect.TypeFor[[]uint32](), Uint64: reflect.TypeFor[[]uint64](),
	Float32: reflect.TypeFor[[]float32](), Float64: reflect.TypeFor[[]float64](),
	Complex64: reflect.TypeFor[[]complex64](), Complex128: reflect.TypeFor[[]complex128](),
}
