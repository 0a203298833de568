package codec

import (
	"reflect"

	"mobula/wire"
)

// EncodeValue is Type.Encode for a value whose type is known only at run time: v is addressable and of the plan's type.
func (p *Plan) EncodeValue(v reflect.Value, inline int) (Encoded, error) {
	return p.encode(v, nil, inline)
}

// DecodeValue is Type.Decode into dst, which is addressable and of the plan's type.
func (p *Plan) DecodeValue(v wire.Value, alias bool, dst reflect.Value, b Binder) error {
	return p.decode(v, alias, dst, b)
}
