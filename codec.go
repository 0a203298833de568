package mobula

import (
	"mobula/internal/call"
	"mobula/internal/codec"
)

// RegisterCodec adds a codec for types with a layout of their own. Call it before the first value
// of such a type is encoded or decoded; every binary must add the same codecs.
func RegisterCodec(c Codec) error { return call.AddCodec(c) }

// Codec lays out the values of some types; see RegisterCodec.
type Codec = codec.Codec

// CodecHeader describes an encoded value to a Codec.
type CodecHeader = codec.Header

// CodecID numbers a codec.
type CodecID = codec.ID

// FirstCodecID is the lowest id that a program's own codec may have.
const FirstCodecID = codec.FirstCustom
