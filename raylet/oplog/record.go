package oplog

import (
	"encoding/binary"
	"hash/crc32"
	"sync/atomic"
	"unsafe"
)

const (
	headerSize = 64 // of a segment
	prefix     = 8  // of a record
	align      = 8

	// MaxRecord is the most bytes of one record: more than any frame of the local protocol.
	MaxRecord = 128 << 20
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// span is how many bytes a record of n bytes takes in a segment.
func span(n int) int { return (prefix + n + align - 1) &^ (align - 1) }

// checksum covers the bytes and their place, so that neither a record of another file nor one moved by damage
// counts as valid.
func checksum(rec []byte, seq uint32, off int) uint32 {
	h := (uint64(seq)<<32 | uint64(uint32(off))) * 0x9e3779b97f4a7c15
	h ^= uint64(len(rec)) * 0xd6e8feb86659fd93
	return crc32.Update(uint32(h>>32)^uint32(h), castagnoli, rec)
}

// putRecord writes a record at off of a mapped segment. The prefix comes last, in one store: before it the record
// does not exist, after it the whole record does.
func putRecord(seg []byte, seq uint32, off int, rec []byte) {
	b := seg[off : off+span(len(rec)) : off+span(len(rec))]
	copy(b[prefix:], rec)
	store(b, uint64(len(rec)+1)|uint64(checksum(rec, seq, off))<<32)
}

// getRecord reads the record at off of a segment's bytes; false if there is no valid one.
func getRecord(seg []byte, seq uint32, off int) (rec []byte, next int, ok bool) {
	if off < headerSize || off%align != 0 || off > len(seg)-prefix {
		return nil, 0, false
	}
	n := int64(binary.LittleEndian.Uint32(seg[off:])) - 1
	if n < 0 || n > MaxRecord || n > int64(len(seg)-off-prefix) {
		return nil, 0, false
	}
	rec = seg[off+prefix : off+prefix+int(n) : off+prefix+int(n)]
	if checksum(rec, seq, off) != binary.LittleEndian.Uint32(seg[off+4:]) {
		return nil, 0, false
	}
	return rec, min(off+span(int(n)), len(seg)), true
}

// recordAt reads the record that begins at off of a segment's bytes. Of one whose checksum was right just now it is not taken once more.
func recordAt(seg []byte, seq uint32, off int, check bool) (rec []byte, ok bool) {
	if check {
		rec, _, ok = getRecord(seg, seq, off)
		return rec, ok
	}
	n := int(binary.LittleEndian.Uint32(seg[off:])) - 1
	return seg[off+prefix : off+prefix+n : off+prefix+n], true
}

// scan calls yield for each record of a segment's bytes up to the first invalid one, and returns the offset of
// that.
func scan(seg []byte, seq uint32, yield func(off int, rec []byte) bool) (end int) {
	off := headerSize
	for {
		rec, next, ok := getRecord(seg, seq, off)
		if !ok || !yield(off, rec) {
			return off
		}
		off = next
	}
}

// validAfter looks for a valid record after the first invalid one, which is then not a torn tail. It returns the record's offset, or 0.
// It checks a bounded number of bytes, since unused bytes have no end mark.
func validAfter(seg []byte, seq uint32, end int) (at int) {
	work := len(seg)
	for off := end + align; off <= len(seg)-prefix && work > 0; off += align {
		n := int(binary.LittleEndian.Uint32(seg[off:])) - 1
		if n < 0 || n > len(seg)-off-prefix {
			continue
		}
		work -= n
		if _, _, ok := getRecord(seg, seq, off); ok {
			return off
		}
	}
	return 0
}

// The header of a segment: magic (8), number (4), checksum of both (4), and the seal (8), which is
// zero until the segment is finished: where its records end, and a checksum of that.
var magic = [8]byte{'M', 'O', 'B', 'L', 'O', 'G', '0', '1'}

func putHeader(b []byte, seq uint32) {
	copy(b, magic[:])
	binary.LittleEndian.PutUint32(b[8:], seq)
	binary.LittleEndian.PutUint32(b[12:], crc32.Checksum(b[:12], castagnoli))
}

// putSeal is one store: a kill leaves a segment sealed or not, nothing between.
func putSeal(b []byte, seq uint32, end int) {
	var e [4]byte
	binary.LittleEndian.PutUint32(e[:], uint32(end))
	store(b[16:], uint64(uint32(end))|uint64(checksum(e[:], seq, 16))<<32)
}

// getHeader reads a header. The end is 0 if the segment is not sealed. It is not ok if the header is damaged or
// belongs to another segment.
func getHeader(b []byte, seq uint32) (end int, ok bool) {
	if len(b) < headerSize || [8]byte(b[:8]) != magic || binary.LittleEndian.Uint32(b[8:]) != seq ||
		crc32.Checksum(b[:12], castagnoli) != binary.LittleEndian.Uint32(b[12:]) {
		return 0, false
	}
	if binary.LittleEndian.Uint64(b[16:]) == 0 {
		return 0, true
	}
	if checksum(b[16:20], seq, 16) != binary.LittleEndian.Uint32(b[20:]) {
		return 0, false
	}
	return int(binary.LittleEndian.Uint32(b[16:])), true
}

// store writes 8 bytes, little endian, in one store. b is aligned to 8.
func store(b []byte, word uint64) {
	var le [8]byte
	binary.LittleEndian.PutUint64(le[:], word)
	atomic.StoreUint64((*uint64)(unsafe.Pointer(&b[0])), binary.NativeEndian.Uint64(le[:]))
}
