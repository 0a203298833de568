package codec

import (
	"encoding/binary"
	"reflect"

	"mobula/internal/errs"
	"mobula/internal/ids"
)

// The CBOR tags of references: each wraps a byte string of 20 bytes, the task id and the
// index, big endian.
const (
	TagRef   uint64 = 28015 // an object
	TagActor uint64 = 28016 // an actor: the object of its creation
)

const refLen = 20

// refBytes and actorBytes are references as the CBOR decoder leaves them where the type is an
// interface: the encoded tag, until the walk that follows replaces them. They are two types
// because the decoder wants one a tag.
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
	dst = append(dst, 0xd9, byte(tag>>8), byte(tag), 0x40|refLen)
	dst = append(dst, id.Task[:]...)
	return binary.BigEndian.AppendUint32(dst, id.Index)
}

// ParseRef reads what AppendRef wrote.
func ParseRef(b []byte) (ids.ObjectID, uint64, error) {
	var id ids.ObjectID
	if len(b) != 4+refLen || b[0] != 0xd9 || b[3] != 0x40|refLen {
		return id, 0, errs.New(errs.CodeNotDecodable, "a reference of %d bytes, want a tag and %d bytes", len(b), refLen)
	}
	tag := uint64(binary.BigEndian.Uint16(b[1:]))
	if tag != TagRef && tag != TagActor {
		return id, 0, errs.New(errs.CodeNotDecodable, "CBOR tag %d is no reference, want %d or %d", tag, TagRef, TagActor)
	}
	copy(id.Task[:], b[4:])
	id.Index = binary.BigEndian.Uint32(b[4+len(id.Task):])
	return id, tag, nil
}
