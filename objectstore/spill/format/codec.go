package format

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	"mobula/internal/ids"
)

// ErrFormat is wrapped by every decoding error.
var ErrFormat = errors.New("not an intact spill file")

// MaxSession is how long a session's name may be, in bytes.
const MaxSession = 64

const (
	version   = 2
	shortIDs  = 1 // the previous version, whose ids had 16 bytes
	magic     = "MBSPILL\x01"
	endMark   = "LLIPSBM\x01"
	afterTask = 4 + 4 + 8 + 8 + 4 // bytes of an entry after the task's id
	entrySize = ids.TaskSize + afterTask
	shortSize = entrySize - 4 // size of an entry of the previous version
	indexTail = 4 + 8
	headerLen = 8 + 4 + 2 + 2 + 8 + 8 + 8 + 4 + MaxSession + 4
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Checksum is the CRC-32C of p.
func Checksum(p []byte) uint32 { return crc32.Checksum(p, castagnoli) }

// Extend continues a checksum with p.
func Extend(crc uint32, p []byte) uint32 { return crc32.Update(crc, castagnoli, p) }

// Header is the content of a file's first page.
type Header struct {
	Session  string
	Target   uint16
	File     uint64 // number within the target
	Count    uint32 // objects
	IndexOff uint64
	Size     uint64 // of the whole file

	short bool // release 0.4 wrote it
}

// IndexLen is the length of the index, without the zeros after it.
func (h Header) IndexLen() uint64 { return uint64(h.Count)*h.entry() + indexTail }

// entry is the length of an entry of the index.
func (h Header) entry() uint64 {
	if h.short {
		return shortSize
	}
	return entrySize
}

// AppendHeader appends the encoded header, less than a page.
func AppendHeader(b []byte, h Header) []byte {
	start := len(b)
	le := binary.LittleEndian
	b = append(b, magic...)
	b = le.AppendUint32(b, version)
	b = le.AppendUint16(b, h.Target)
	b = le.AppendUint16(b, uint16(len(h.Session)))
	b = le.AppendUint64(b, h.File)
	b = le.AppendUint64(b, h.IndexOff)
	b = le.AppendUint64(b, h.Size)
	b = le.AppendUint32(b, h.Count)
	var name [MaxSession]byte
	copy(name[:], h.Session)
	b = append(b, name[:]...)
	return le.AppendUint32(b, Checksum(b[start:]))
}

// DecodeHeader reads the first page of a file.
func DecodeHeader(p []byte) (Header, error) {
	var h Header
	if len(p) < headerLen {
		return h, fmt.Errorf("header has %d of %d bytes: %w", len(p), headerLen, ErrFormat)
	}
	p = p[:headerLen]
	le := binary.LittleEndian
	if string(p[:8]) != magic {
		return h, fmt.Errorf("header starts with %q, want %q: %w", p[:8], magic, ErrFormat)
	}
	if got, want := Checksum(p[:headerLen-4]), le.Uint32(p[headerLen-4:]); got != want {
		return h, fmt.Errorf("header's checksum is %08x, want %08x: %w", got, want, ErrFormat)
	}
	switch v := le.Uint32(p[8:]); v {
	case version:
	case shortIDs:
		h.short = true
	default:
		return h, fmt.Errorf("version is %d, this program reads %d and %d: %w", v, shortIDs, version, ErrFormat)
	}
	n := int(le.Uint16(p[14:]))
	if n > MaxSession {
		return h, fmt.Errorf("session's name has %d bytes, at most %d are allowed: %w", n, MaxSession, ErrFormat)
	}
	h.Target = le.Uint16(p[12:])
	h.File = le.Uint64(p[16:])
	h.IndexOff = le.Uint64(p[24:])
	h.Size = le.Uint64(p[32:])
	h.Count = le.Uint32(p[40:])
	h.Session = string(p[44 : 44+n])
	if h.IndexOff < headerSize || h.Size == 0 || fileSize(h.IndexOff, h.IndexLen()) != h.Size {
		return Header{}, fmt.Errorf("%d objects with their index at %d do not make %d bytes: %w", h.Count, h.IndexOff, h.Size, ErrFormat)
	}
	return h, nil
}

// AppendIndex appends the encoded index.
func AppendIndex(b []byte, entries []Entry) []byte {
	start := len(b)
	le := binary.LittleEndian
	for i := range entries {
		e := &entries[i]
		b = append(b, e.ID.Task[:]...)
		b = le.AppendUint32(b, e.ID.Index)
		b = le.AppendUint32(b, e.Attempt)
		b = le.AppendUint64(b, e.Off)
		b = le.AppendUint64(b, e.Size)
		b = le.AppendUint32(b, e.CRC)
	}
	b = le.AppendUint32(b, Checksum(b[start:]))
	return append(b, endMark...)
}

// DecodeIndex reads the index that h announces.
func DecodeIndex(p []byte, h Header) ([]Entry, error) {
	if uint64(len(p)) < h.IndexLen() {
		return nil, fmt.Errorf("index has %d of %d bytes: %w", len(p), h.IndexLen(), ErrFormat)
	}
	p = p[:h.IndexLen()]
	le := binary.LittleEndian
	body, tail := p[:len(p)-indexTail], p[len(p)-indexTail:]
	if string(tail[4:]) != endMark {
		return nil, fmt.Errorf("index ends with %q, want %q: %w", tail[4:], endMark, ErrFormat)
	}
	if got, want := Checksum(body), le.Uint32(tail); got != want {
		return nil, fmt.Errorf("index's checksum is %08x, want %08x: %w", got, want, ErrFormat)
	}
	out := make([]Entry, h.Count)
	for i := range out {
		q, e := body[uint64(i)*h.entry():], &out[i]
		n := h.entry() - afterTask
		e.ID.Task, _ = ids.TaskOf(q[:n])
		q = q[n:]
		e.ID.Index = le.Uint32(q)
		e.Attempt = le.Uint32(q[4:])
		e.Off = le.Uint64(q[8:])
		e.Size = le.Uint64(q[16:])
		e.CRC = le.Uint32(q[24:])
		if e.Off < headerSize || e.Off > h.IndexOff || e.Size > h.IndexOff-e.Off {
			return nil, fmt.Errorf("object %v at %d+%d lies outside the %d bytes of objects: %w", e.ID, e.Off, e.Size, h.IndexOff, ErrFormat)
		}
	}
	return out, nil
}
