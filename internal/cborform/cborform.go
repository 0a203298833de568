package cborform

import (
	"math"

	"github.com/fxamacker/cbor/v2"
)

// MaxDepth is how deep a value may be nested.
const MaxDepth = 10_000

// Encoding is how values are encoded.
func Encoding() cbor.EncOptions {
	o := cbor.CoreDetEncOptions()
	o.Time = cbor.TimeRFC3339Nano // the default, whole seconds, would lose a time's fraction
	o.TimeTag = cbor.EncTagRequired
	o.TextMarshaler = cbor.TextMarshalerTextString
	return o
}

// Decoding is how they are decoded.
func Decoding() cbor.DecOptions {
	return cbor.DecOptions{
		MaxNestedLevels:  MaxDepth,
		MaxArrayElements: math.MaxInt32,
		MaxMapPairs:      math.MaxInt32,
		IntDec:           cbor.IntDecConvertSignedOrBigInt,
		BigIntDec:        cbor.BigIntDecodePointer,
		TextUnmarshaler:  cbor.TextUnmarshalerTextString,
		TimeTag:          cbor.DecTagOptional,
		UTF8:             cbor.UTF8DecodeInvalid, // a Go string may hold any bytes
		DupMapKey:        cbor.DupMapKeyEnforcedAPF,
	}
}
