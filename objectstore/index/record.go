package index

import (
	"encoding/binary"
	"hash/crc32"

	"mobula/internal/ids"
	"mobula/objectstore/alloc"
	"mobula/objectstore/record"
)

const (
	halfSize    = 192
	slotSize    = 2 * halfSize
	fixedSize   = 116 // of a half, before the inline payload
	inlineMax   = halfSize - fixedSize
	flagRes     = 1
	flagSpill   = 2
	flagSlab    = 4
	flagPacked  = 8
	flagCopy    = 16
	flagLongIDs = 32 // the half has the layout of version 3; else that of earlier versions
	payloadMax  = 64 << 20
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// half is a record as written: with its generation and the place of its payload.
type half struct {
	gen     uint32
	rec     record.Record
	payLen  uint32 // path and payload
	pathLen uint16
	payHead uint32 // first overflow page + 1; 0: inline
	payCRC  uint32
	inline  []byte
}

// encode writes h to dst, which has halfSize bytes. The checksum covers everything after it.
func (h *half) encode(dst []byte) {
	r := &h.rec
	le := binary.LittleEndian
	le.PutUint32(dst[4:], h.gen)
	dst[8] = byte(r.State)
	flags := byte(flagLongIDs)
	if r.Resident {
		flags |= flagRes
	}
	if r.Spilled {
		flags |= flagSpill
	}
	if r.Block.Slab {
		flags |= flagSlab
	}
	if r.Packed {
		flags |= flagPacked
	}
	if r.Copy {
		flags |= flagCopy
	}
	dst[9] = flags
	le.PutUint32(dst[10:], h.payLen)
	le.PutUint32(dst[14:], h.payHead)
	le.PutUint32(dst[18:], h.payCRC)
	le.PutUint16(dst[22:], h.pathLen)
	copy(dst[24:44], r.ID.Task[:])
	le.PutUint32(dst[44:], r.ID.Index)
	le.PutUint32(dst[48:], r.Attempt)
	if r.State == record.StateClient { // which has no attempt
		le.PutUint32(dst[48:], uint32(r.PID))
	}
	le.PutUint64(dst[52:], uint64(r.Client))
	le.PutUint64(dst[60:], uint64(r.Job))
	le.PutUint32(dst[68:], r.File)
	put48(dst[72:], r.Block.Off)
	put48(dst[78:], r.Block.Size)
	put48(dst[84:], r.Size)
	le.PutUint16(dst[90:], r.Loc.Target)
	le.PutUint64(dst[92:], r.Loc.File)
	put48(dst[100:], r.Loc.Off)
	put48(dst[106:], r.Loc.Size)
	le.PutUint32(dst[112:], r.Loc.CRC)
	n := copy(dst[fixedSize:halfSize], h.inline)
	clear(dst[fixedSize+n : halfSize])
	checksum(dst)
}

func checksum(half []byte) { binary.LittleEndian.PutUint32(half, crc(half[4:halfSize])) }

func crc(b []byte) uint32 { return crc32.Checksum(b, castagnoli) }

// put48 writes a size in six bytes: 256 TiB are more than a segment or a spill file has.
func put48(dst []byte, v uint64) {
	binary.LittleEndian.PutUint32(dst, uint32(v))
	binary.LittleEndian.PutUint16(dst[4:], uint16(v>>32))
}

func get48(src []byte) uint64 {
	return uint64(binary.LittleEndian.Uint32(src)) | uint64(binary.LittleEndian.Uint16(src[4:]))<<32
}

// decode reads a half; false if its checksum or a field is wrong. An all-zero half is a
// valid free one of generation 0.
func decode(src []byte) (half, bool) {
	le := binary.LittleEndian
	var h half
	if le.Uint32(src) != crc32.Checksum(src[4:halfSize], castagnoli) {
		return h, [halfSize]byte(src[:halfSize]) == [halfSize]byte{}
	}
	r := &h.rec
	h.gen = le.Uint32(src[4:])
	r.State = record.State(src[8])
	r.Resident = src[9]&flagRes != 0
	r.Spilled = src[9]&flagSpill != 0
	r.Block.Slab = src[9]&flagSlab != 0
	r.Packed = src[9]&flagPacked != 0
	r.Copy = src[9]&flagCopy != 0
	h.payLen = le.Uint32(src[10:])
	h.payHead = le.Uint32(src[14:])
	h.payCRC = le.Uint32(src[18:])
	fixed := fixedSize
	if src[9]&flagLongIDs != 0 {
		h.readFields(src)
	} else {
		h.readShortIDs(src)
		fixed = shortIDsSize
	}
	if r.Block.Size > 0 {
		r.Block.Owner = alloc.Owner(r.Job)
	}
	if r.State >= record.StateEnd || h.payLen > payloadMax || uint32(h.pathLen) > h.payLen || (h.payHead == 0 && int(h.payLen) > halfSize-fixed) {
		return h, false
	}
	if h.payHead == 0 {
		h.inline = src[fixed : fixed+int(h.payLen)]
	}
	return h, true
}

// readFields reads the fields of a half in the layout that encode writes.
func (h *half) readFields(src []byte) {
	le, r := binary.LittleEndian, &h.rec
	h.pathLen = le.Uint16(src[22:])
	copy(r.ID.Task[:], src[24:44])
	r.ID.Index = le.Uint32(src[44:])
	if r.State == record.StateClient {
		r.PID = int32(le.Uint32(src[48:]))
	} else {
		r.Attempt = le.Uint32(src[48:])
	}
	r.Client = ids.ClientID(le.Uint64(src[52:]))
	r.Job = ids.JobID(le.Uint64(src[60:]))
	r.File = le.Uint32(src[68:])
	r.Block.Off = get48(src[72:])
	r.Block.Size = get48(src[78:])
	r.Size = get48(src[84:])
	r.Loc.Target = le.Uint16(src[90:])
	r.Loc.File = le.Uint64(src[92:])
	r.Loc.Off = get48(src[100:])
	r.Loc.Size = get48(src[106:])
	r.Loc.CRC = le.Uint32(src[112:])
}
