package codec

import (
	"bytes"
	"encoding/binary"
	"reflect"

	"mobula/internal/errs"
	"mobula/internal/ids"
)

// The CBOR tags of references: each wraps a byte string, the object's id. Releases before 0.5 wrote shorter ones.
const (
	TagRef   uint64 = 28015 // an object
	TagActor uint64 = 28016 // an actor: the object of its creation
)

// byteString begins a CBOR byte string whose length is in the next byte; shorter strings have it in this byte.
const byteString = 0x58

// refBytes and actorBytes are references that the CBOR decoder has put into interfaces: the encoded tag, until the
// walk after it replaces them. There are two types because the decoder needs one for each tag.
type (
	refBytes   []byte
	actorBytes []byte
)

var (
	typeOfRefBytes   = reflect.TypeFor[refBytes]()
	typeOfActorBytes = reflect.TypeFor[actorBytes]()
)

// UnmarshalCBOR keeps the bytes.
func (r *refBytes) UnmarshalCBOR(b []byte) error { return keepRef((*[]byte)(r), b) }

// UnmarshalCBOR keeps the bytes.
func (r *actorBytes) UnmarshalCBOR(b []byte) error { return keepRef((*[]byte)(r), b) }

func keepRef(dst *[]byte, b []byte) error {
	if _, _, err := ParseRef(b); err != nil {
		return err
	}
	*dst = append((*dst)[:0], b...)
	return nil
}

// AppendRef writes a reference as CBOR.
func AppendRef(dst []byte, id ids.ObjectID, tag uint64) []byte {
	return id.Append(append(dst, 0xd9, byte(tag>>8), byte(tag), byteString, byte(ids.ObjectSize)))
}

// countRefs counts what AppendRef has written in encoded data. Other data looks like it once in a trillion bytes.
func countRefs(data []byte) (n int) {
	for _, tag := range []uint64{TagRef, TagActor} {
		n += bytes.Count(data, []byte{0xd9, byte(tag >> 8), byte(tag), byteString, byte(ids.ObjectSize)})
	}
	return n
}

// ParseRef reads what AppendRef wrote.
func ParseRef(b []byte) (ids.ObjectID, uint64, error) {
	var raw []byte
	switch {
	case len(b) < 5 || b[0] != 0xd9:
	case b[3] == byteString && int(b[4]) == len(b)-5:
		raw = b[5:]
	case int(b[3]) == 0x40|len(b)-4:
		raw = b[4:]
	}
	id, ok := ids.ObjectOf(raw)
	if !ok {
		return ids.ObjectID{}, 0, errs.New(errs.CodeNotDecodable, "a reference of %d bytes, want a tag and %d bytes", len(b), ids.ObjectSize)
	}
	tag := uint64(binary.BigEndian.Uint16(b[1:]))
	if tag != TagRef && tag != TagActor {
		return id, 0, errs.New(errs.CodeNotDecodable, "CBOR tag %d is no reference, want %d or %d", tag, TagRef, TagActor)
	}
	return id, tag, nil
}
