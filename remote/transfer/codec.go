package transfer

import (
	"encoding/binary"
	"fmt"

	"mobula/internal/ids"
)

// A frame is a head and a body; a chunk's bytes follow its body. Numbers are big-endian.

// HeadSize is the length of a head: the frame's kind, three bytes that are zero, and the length of the body.
const HeadSize = 8

// MaxBody bounds a body.
const MaxBody = 1 << 10

const (
	kindPull = iota + 1
	kindCredit
	kindChunk
	kindAlive
	kindRefused
)

const (
	pullBody    = 8 + ids.ObjectSize + 4 + 8 + 8 + 8 + 1
	creditBody  = 8 + 8
	chunkBody   = 8 + 8 + 4 + 4
	refusedBody = 8 + 1 // and 4 for each other node

	// MaxOthers is how many nodes Refused can name.
	MaxOthers = 32
)

const (
	flagMore = 1 << iota
	flagMust
)

// Append writes a frame; a chunk's bytes follow it.
func Append(b []byte, f Frame) []byte {
	start := len(b)
	b = append(b, make([]byte, HeadSize)...)
	var kind byte
	switch f := f.(type) {
	case Pull:
		kind = kindPull
		b = binary.BigEndian.AppendUint64(b, f.Token)
		b = f.Object.ID.Append(b)
		b = binary.BigEndian.AppendUint32(b, f.Object.Attempt)
		b = binary.BigEndian.AppendUint64(b, uint64(f.Size))
		b = binary.BigEndian.AppendUint64(b, uint64(f.Offset))
		b = binary.BigEndian.AppendUint64(b, uint64(f.Limit))
		b = append(b, flag(f.More, flagMore)|flag(f.Must, flagMust))
	case Credit:
		kind = kindCredit
		b = binary.BigEndian.AppendUint64(b, f.Token)
		b = binary.BigEndian.AppendUint64(b, uint64(f.Limit))
	case Chunk:
		kind = kindChunk
		b = binary.BigEndian.AppendUint64(b, f.Token)
		b = binary.BigEndian.AppendUint64(b, uint64(f.Offset))
		b = binary.BigEndian.AppendUint32(b, uint32(f.Size))
		b = binary.BigEndian.AppendUint32(b, f.Sum)
	case Alive:
		kind = kindAlive
	case Refused:
		kind = kindRefused
		b = binary.BigEndian.AppendUint64(b, f.Token)
		b = append(b, byte(f.Reason))
		for _, h := range f.Others[:min(len(f.Others), MaxOthers)] {
			b = binary.BigEndian.AppendUint32(b, uint32(h))
		}
	}
	b[start] = kind
	binary.BigEndian.PutUint32(b[start+4:], uint32(len(b)-start-HeadSize))
	return b
}

func flag(set bool, bit byte) byte {
	if set {
		return bit
	}
	return 0
}

// Head is the beginning of a frame.
type Head struct {
	kind byte
	Body int // how many bytes follow, without those of a chunk
}

// DecodeHead reads HeadSize bytes.
func DecodeHead(b []byte) (Head, error) {
	h := Head{kind: b[0]}
	n := binary.BigEndian.Uint32(b[4:])
	if b[1]|b[2]|b[3] != 0 || h.kind < kindPull || h.kind > kindRefused || n > MaxBody {
		return Head{}, fmt.Errorf("%w: the head %x is none", ErrProtocol, b[:HeadSize])
	}
	h.Body = int(n)
	return h, nil
}

// Decode reads the body of a frame. What it accepts Append writes in the same way.
func (h Head) Decode(b []byte) (Frame, error) {
	switch {
	case h.kind == kindPull && len(b) == pullBody:
		id, _ := ids.ObjectOf(b[8 : 8+ids.ObjectSize])
		r := b[8+ids.ObjectSize:]
		f := Pull{
			Token: binary.BigEndian.Uint64(b), Object: Object{id, binary.BigEndian.Uint32(r)},
			Size: int64(binary.BigEndian.Uint64(r[4:])), Offset: int64(binary.BigEndian.Uint64(r[12:])), Limit: int64(binary.BigEndian.Uint64(r[20:])),
			More: r[28]&flagMore != 0, Must: r[28]&flagMust != 0,
		}
		if r[28] <= flagMore|flagMust && f.Offset >= 0 && f.Offset < f.Size && f.Offset%ChunkSize == 0 {
			return f, nil
		}
	case h.kind == kindCredit && len(b) == creditBody:
		return Credit{Token: binary.BigEndian.Uint64(b), Limit: int64(binary.BigEndian.Uint64(b[8:]))}, nil
	case h.kind == kindChunk && len(b) == chunkBody:
		f := Chunk{
			Token: binary.BigEndian.Uint64(b), Offset: int64(binary.BigEndian.Uint64(b[8:])),
			Size: int(binary.BigEndian.Uint32(b[16:])), Sum: binary.BigEndian.Uint32(b[20:]),
		}
		if f.Size > 0 && f.Size <= ChunkSize && f.Offset >= 0 && f.Offset%ChunkSize == 0 {
			return f, nil
		}
	case h.kind == kindAlive && len(b) == 0:
		return Alive{}, nil
	case h.kind == kindRefused && len(b) >= refusedBody && (len(b)-refusedBody)%4 == 0 && len(b) <= refusedBody+4*MaxOthers:
		f := Refused{Token: binary.BigEndian.Uint64(b), Reason: Reason(b[8])}
		for r := b[refusedBody:]; len(r) > 0; r = r[4:] {
			f.Others = append(f.Others, ids.Home(binary.BigEndian.Uint32(r)))
		}
		if f.Reason >= Missing && f.Reason <= Failed {
			return f, nil
		}
	}
	return nil, fmt.Errorf("%w: a frame of kind %d with the body %x", ErrProtocol, h.kind, b)
}
