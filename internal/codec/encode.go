package codec

import (
	"reflect"

	"google.golang.org/protobuf/proto"

	"mobula/internal/errs"
)

var nullMeta = Header{Codec: CBOR, Name: "nil"}.Append(nil)

var null = []byte{0xf6}

// encode is the general case: v is addressable and of type p.typ.
func (p *Plan) encode(v reflect.Value, scratch []byte, inline int) (e Encoded, err error) {
	// A marshaler that panics is caught here. A concurrent change of a map cannot be.
	defer func() {
		if r := recover(); r != nil {
			e, err = Encoded{}, errs.New(errs.CodeNotEncodable, "%s: encoder panicked: %v", p.name, r)
		}
	}()
	switch p.form {
	case formAny:
		if v.IsNil() {
			return Encoded{Meta: nullMeta, Size: len(null), Inline: append(scratch, null...)}, nil
		}
		return p.reg.encodeDynamic(v.Elem(), scratch, inline)
	case formProto:
		if v.IsNil() {
			return Encoded{Meta: nullMeta, Size: len(null), Inline: append(scratch, null...)}, nil
		}
		return p.encodeProto(v.Interface().(proto.Message), scratch, inline)
	case formCustom:
		h, size, fill, err := p.custom.Encode(v.Interface())
		if err != nil {
			return Encoded{}, &errs.Error{Code: errs.CodeNotEncodable, Msg: p.name + ": " + err.Error(), Cause: []*errs.Error{errs.From(err)}}
		}
		h.Codec = p.custom.ID()
		e = Encoded{Meta: h.Append(nil), Size: size, Fill: fill}
		if size <= inline {
			e.Inline, e.Fill = grow(scratch, size), nil
			fill(e.Inline)
		}
		return e, nil
	case formCBOR:
		data, refs, err := p.encodeCBOR(v, scratch)
		if err != nil {
			return Encoded{}, err
		}
		return Encoded{Meta: p.meta, Size: len(data), Refs: refs, Inline: data}, nil
	}
	return p.encodeFlat(v, scratch, inline), nil
}

// encodeFlat encodes the forms that Type.Encode does without reflection, for a value that came in an interface.
func (p *Plan) encodeFlat(v reflect.Value, scratch []byte, inline int) Encoded {
	at := v.Addr().UnsafePointer()
	if data, ok := p.appendScalar(at, scratch); ok {
		return Encoded{Meta: p.meta, Size: len(data), Inline: data}
	}
	if p.form == formText {
		s := v.String()
		return p.raw(stringData(s), len(s), scratch, inline)
	}
	s := (*sliceHeader)(at)
	return p.raw(s.data, s.len*int(p.size), scratch, inline)
}

func (r *Registry) encodeDynamic(v reflect.Value, scratch []byte, inline int) (Encoded, error) {
	c := reflect.New(v.Type()).Elem()
	c.Set(v)
	return r.PlanOf(v.Type()).encode(c, scratch, inline)
}

func (p *Plan) encodeProto(m proto.Message, scratch []byte, inline int) (Encoded, error) {
	opts := proto.MarshalOptions{Deterministic: true}
	size := opts.Size(m)
	if err := proto.CheckInitialized(m); err != nil {
		return Encoded{}, errs.New(errs.CodeNotEncodable, "%s: %v", p.name, err)
	}
	if size <= inline {
		data, err := opts.MarshalAppend(scratch, m)
		if err != nil {
			return Encoded{}, errs.New(errs.CodeNotEncodable, "%s: %v", p.name, err)
		}
		return Encoded{Meta: p.meta, Size: len(data), Inline: data}, nil
	}
	// Only marshalling shows whether it works (valid UTF-8), and Fill must not fail.
	data, err := opts.MarshalAppend(make([]byte, 0, size), m)
	if err != nil {
		return Encoded{}, errs.New(errs.CodeNotEncodable, "%s: %v", p.name, err)
	}
	return Encoded{Meta: p.meta, Size: len(data), Inline: data}, nil
}

func grow(b []byte, n int) []byte {
	if cap(b)-len(b) >= n {
		return b[:len(b)+n]
	}
	return append(b, make([]byte, n)...)
}
