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

// The header is a page: magic, version and the segment's size with their checksum; from ownerAt the checksum of what follows, its
// length, and the rest of the owner as JSON. A build that does not know the latter passes over it.
const (
	ownerAt  = 64
	ownerMax = headerSize - ownerAt - 8
)

// Owner is whose an index is, and of what.
type Owner struct {
	Segment uint64 `json:"-"`    // bytes
	Boot    string `json:"boot"` // the run of the machine in which the segment was written; empty: not known
	Node    string `json:"node"` // the identity of the node; empty: not known
	Dir     string `json:"dir"`  // the node's directory

	narrow bool // release 0.4 wrote it
}

// ErrForeign is wrapped when an index is another node's.
var ErrForeign = errors.New("it belongs to another node")

func header(o Owner) ([]byte, error) {
	b := make([]byte, headerSize)
	le := binary.LittleEndian
	copy(b, magic)
	le.PutUint32(b[8:], version)
	le.PutUint64(b[12:], o.Segment)
	le.PutUint32(b[20:], crc32.Checksum(b[:20], castagnoli))
	text, err := json.Marshal(o)
	if err == nil && len(text) > ownerMax { // a path that is too long to be found again
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

// ReadOwner reads whose index is in f. One that is not intact is ErrCorrupt; of what an earlier build wrote only the size is known.
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
	o.Segment, o.narrow = le.Uint64(b[12:]), v == shortIDs
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

// Resize says that the segment has another size now. It is as durable as the records.
func (x *Index) Resize(segment uint64) error {
	o, err := ReadOwner(x.file)
	if err != nil {
		return err
	}
	o.Segment = segment
	return x.writeHeader(o)
}

// inMemory tells whether a file goes with the run of the machine.
func inMemory(f *os.File) bool {
	var fs unix.Statfs_t
	return unix.Fstatfs(int(f.Fd()), &fs) == nil && fs.Type == unix.TMPFS_MAGIC
}

// forget takes out of the records whatever only the memory of another run of the machine held. What reached the disk of a segment
// there nobody knows: a hole reads as zeros. A spilled copy has a checksum, by which it is known when it is read.
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
		r.Payload = append([]byte{}, r.Payload...) // written anew, without the path
		if err := x.Write(e.Slot, &r); err != nil {
			return err
		}
	}
	return nil
}
