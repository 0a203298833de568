package index

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"os"

	"golang.org/x/sys/unix"

	"mobula/internal/errs"
	"mobula/objectstore/alloc"
	"mobula/objectstore/record"
)

// The header is a page: magic, version and the segment's size with their checksum; at ownerAt a checksum, a length, and the rest
// of the owner as JSON. A build that does not know the JSON skips it.
const (
	ownerAt  = 64
	ownerMax = headerSize - ownerAt - 8
)

// Owner identifies the node and the segment of an index.
type Owner struct {
	Segment uint64 `json:"-"`    // bytes
	Boot    string `json:"boot"` // the boot id of the machine when the segment was written; empty: unknown
	Node    string `json:"node"` // the identity of the node; empty: unknown
	Dir     string `json:"dir"`  // the node's directory

	shortIDs bool // release 0.4 wrote it
}

// ErrForeign is wrapped when an index belongs to another node.
var ErrForeign = errors.New("it belongs to another node")

func header(o Owner) ([]byte, error) {
	b := make([]byte, headerSize)
	le := binary.LittleEndian
	copy(b, magic)
	le.PutUint32(b[8:], version)
	le.PutUint64(b[12:], o.Segment)
	le.PutUint32(b[20:], crc32.Checksum(b[:20], castagnoli))
	text, err := json.Marshal(o)
	if err == nil && len(text) > ownerMax { // a path that is too long to fit
		o.Dir = ""
		text, err = json.Marshal(o)
	}
	if err != nil || len(text) > ownerMax {
		return nil, errs.New(errs.CodeInvalid, "the owner of an index takes %d bytes, at most %d are possible (%v)", len(text), ownerMax, err)
	}
	le.PutUint32(b[ownerAt+4:], uint32(len(text)))
	copy(b[ownerAt+8:], text)
	le.PutUint32(b[ownerAt:], crc32.Checksum(b[ownerAt+4:], castagnoli))
	return b, nil
}

// ReadOwner reads the owner of the index in f. A damaged one gives ErrCorrupt; an earlier build's index has only the size.
func ReadOwner(f *os.File) (Owner, error) {
	var o Owner
	b := make([]byte, headerSize)
	if _, err := f.ReadAt(b, 0); err != nil {
		return o, fmt.Errorf("index header: %w: %w", ErrCorrupt, err)
	}
	le := binary.LittleEndian
	if string(b[:8]) != magic || le.Uint32(b[20:]) != crc32.Checksum(b[:20], castagnoli) {
		return o, fmt.Errorf("index header: %w", ErrCorrupt)
	}
	v := le.Uint32(b[8:])
	if v != version && v != shortIDs {
		return o, fmt.Errorf("index of version %d, this build knows %d and %d: %w", v, shortIDs, version, ErrCorrupt)
	}
	n := le.Uint32(b[ownerAt+4:])
	if n <= ownerMax && le.Uint32(b[ownerAt:]) == crc32.Checksum(b[ownerAt+4:], castagnoli) {
		if err := json.Unmarshal(b[ownerAt+8:ownerAt+8+n], &o); err != nil {
			o = Owner{}
		}
	}
	o.Segment, o.shortIDs = le.Uint64(b[12:]), v == shortIDs
	return o, nil
}

func (x *Index) writeHeader(o Owner) error {
	b, err := header(o)
	if err != nil {
		return err
	}
	if _, err := x.file.WriteAt(b, 0); err != nil {
		return errs.New(errs.CodeSegmentUnavailable, "write index header: %v", err)
	}
	return nil
}

// Resize records a new size of the segment, as durably as the records.
func (x *Index) Resize(segment uint64) error {
	o, err := ReadOwner(x.file)
	if err != nil {
		return err
	}
	o.Segment = segment
	return x.writeHeader(o)
}

// inMemory tells whether a file is lost in a reboot of the machine.
func inMemory(f *os.File) bool {
	var fs unix.Statfs_t
	return unix.Fstatfs(int(f.Fd()), &fs) == nil && fs.Type == unix.TMPFS_MAGIC
}

// forget removes everything from the records that was only in memory before a reboot of the machine. For a segment on disk nobody
// knows what reached the disk, since a hole reads as zeros. A spilled copy has a checksum, which is checked when it is read.
func (x *Index) forget() error {
	for _, e := range x.Replay() {
		r := e.Record
		if !r.Spilled || r.State != record.StateSealed && r.State != record.StateRestoring {
			if err := x.Clear(e.Slot); err != nil {
				return err
			}
			x.forgot++
			continue
		}
		r.State, r.Resident, r.File, r.Block, r.Path = record.StateSealed, false, 0, alloc.Block{}, ""
		r.Payload = append([]byte{}, r.Payload...) // rewritten without the path
		if err := x.Write(e.Slot, &r); err != nil {
			return err
		}
	}
	return nil
}
