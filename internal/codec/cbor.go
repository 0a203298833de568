package codec

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"sync"

	"github.com/fxamacker/cbor/v2"

	"mobula/internal/cborform"
	"mobula/internal/errs"
	"mobula/internal/ids"
)

type cborModes struct {
	enc    cbor.UserBufferEncMode
	dec    cbor.DecMode
	strict cbor.DecMode // refuses fields that the type does not have: used when the stored type has another name
	err    error
}

var modes = sync.OnceValue(func() *cborModes {
	m := &cborModes{}
	var e1, e2, e3 error
	m.enc, e1 = cborform.Encoding().UserBufferEncMode()

	tags := cbor.NewTagSet()
	opts := cbor.TagOptions{DecTag: cbor.DecTagRequired}
	e2 = errors.Join(tags.Add(opts, typeOfRefBytes, TagRef), tags.Add(opts, typeOfActorBytes, TagActor))
	do := cborform.Decoding()
	m.dec, e3 = do.DecModeWithTags(tags)
	do.ExtraReturnErrors = cbor.ExtraDecErrorUnknownField
	var e4 error
	m.strict, e4 = do.DecModeWithTags(tags)
	m.err = errors.Join(e1, e2, e3, e4)
	return m
})

var buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

const keepBuffer = 1 << 20 // bytes; larger buffers are left to the garbage collector

// encodeCBOR encodes v, of type p.typ, after scratch; refs are the references in v.
func (p *Plan) encodeCBOR(v reflect.Value, scratch []byte) (out []byte, refs []ids.ObjectID, err error) {
	if err := p.Err(); err != nil {
		return nil, nil, err
	}
	m := modes()
	if m.err != nil {
		return nil, nil, m.err
	}
	own := p.root.own
	if p.root.walk {
		c := collector{reg: p.reg}
		if err := c.walk(v, p.root); err != nil {
			return nil, nil, err
		}
		refs, own = c.refs, own || c.own
	}
	buf := buffers.Get().(*bytes.Buffer)
	buf.Reset()
	if err := m.enc.MarshalToBuffer(v.Interface(), buf); err != nil {
		var own *errs.Error
		if errors.As(err, &own) {
			return nil, nil, err
		}
		return nil, nil, &errs.Error{Code: errs.CodeNotEncodable, Msg: p.name + ": " + err.Error()}
	}
	if own && countRefs(buf.Bytes()) > len(refs) {
		return nil, nil, errs.New(errs.CodeNotEncodable, "%s: a part that encodes itself has written a reference, which nobody would hold: have "+
			"references in exported fields, or in slices and maps, of types that do not", p.name)
	}
	if buf.Len() > keepBuffer {
		return buf.Bytes(), refs, nil // the buffer is given away
	}
	out = append(scratch, buf.Bytes()...)
	buffers.Put(buf)
	return out, refs, nil
}

// decodeCBOR decodes into dst, which is addressable and of type p.typ.
func (p *Plan) decodeCBOR(h Header, data []byte, dst reflect.Value, b Binder) (err error) {
	m := modes()
	if m.err != nil {
		return m.err
	}
	// A type's own UnmarshalCBOR is the program's code, and may panic.
	defer func() {
		if r := recover(); r != nil {
			err = p.mismatch(h, fmt.Sprintf("decoder panicked: %v", r))
		}
	}()
	dec := m.dec
	if h.Name != p.name {
		dec = m.strict
	}
	if err := dec.Unmarshal(data, dst.Addr().Interface()); err != nil {
		return p.mismatch(h, err.Error())
	}
	if p.root.walk {
		return attacher{reg: p.reg, b: b}.walk(dst, p.root)
	}
	return nil
}

// mismatch names both types.
func (p *Plan) mismatch(h Header, why string) error {
	if h.Codec == Pickle {
		why = "only Python reads it; what other languages read are numbers, text, bytes, arrays of numbers, Arrow record batches and, " +
			"of put(x, portable=True) or as an argument or result across languages, lists and dicts"
	}
	if why != "" {
		why = ": " + why
	}
	return errs.New(errs.CodeNotDecodable, "value is %s, want %s%s", h, p.name, why)
}
