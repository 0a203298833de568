package storage

import (
	"context"
	"errors"
	"os"

	"mobula/objectstore/spill"
	"mobula/objectstore/spill/format"
)

// Sentinels that every implementation uses, beside those of package spill.
var (
	ErrReadOnly = errors.New("spill target is read-only")
	ErrGone     = errors.New("spill target is gone") // the directory or bucket itself
	ErrForeign  = errors.New("spill session belongs to another node")
	ErrInUse    = errors.New("spill session is in use by a running process")
)

// File is one stored file.
type File struct {
	Number uint64
	Size   uint64
}

// Part is an object, or a range of one, in a file.
type Part struct {
	Off uint64
	Dst []byte
	CRC uint32 // CRC-32C of what was read
}

// MaxRun is how many bytes ReadMany takes at once, whatever the offsets: as many as fit one buffer. It takes up to
// spill.MaxParts parts.
const MaxRun = format.BatchBytes - 2*format.Page

// Span is the range that parts cover.
func Span(parts []Part) (off, size uint64) {
	last := parts[len(parts)-1]
	return parts[0].Off, last.Off + uint64(len(last.Dst)) - parts[0].Off
}

// Storage is one session's part of one target.
type Storage interface {
	// Put stores the stream as a file; one that ends with an error (Stream.Err) it does not. After an error the file's content is undefined: it may be
	// deleted, or put again with the stream rewound.
	Put(ctx context.Context, file uint64, s *format.Stream) error
	// Read fills dst from off and returns the CRC-32C of what it read. A file that ends early is spill.ErrCorrupt.
	Read(ctx context.Context, file uint64, off uint64, dst []byte) (crc uint32, err error)
	// ReadMany fills parts in ascending order of offset, which span at most MaxRun bytes, with as few requests as it
	// can. It sets each part's CRC. After an error all parts are undefined.
	ReadMany(ctx context.Context, file uint64, parts []Part) error
	// Delete removes a file; a missing file is not an error.
	Delete(ctx context.Context, file uint64) error
	// List gives every file of the session, in any order.
	List(ctx context.Context) ([]File, error)
	// Probe reads the capacity and, if write is set, checks that a small file can be made.
	Probe(ctx context.Context, write bool) (spill.Capacity, error)
	// Close releases the session; remove also deletes its files.
	Close(remove bool) error
}

// Local is a Storage whose files can be mapped.
type Local interface {
	Storage
	// Allocate makes a file of size bytes with every block reserved.
	Allocate(size uint64) (*os.File, error)
	// Reopen opens such a file by its path.
	Reopen(path string) (*os.File, error)
	// Allocated gives the paths of all such files.
	Allocated() ([]string, error)
	// Unlink removes one.
	Unlink(path string) error
}
