package world

import (
	"fmt"
	"maps"
	"slices"

	"mobula/internal/errs"
	"mobula/objectstore"
	"mobula/objectstore/spill"
	"mobula/objectstore/spill/format"
)

// spillStorage is a node's spill target: files of objects, which outlive the process and the machine.
type spillStorage struct {
	n     *Node
	files map[uint64]*spillFile
	refs  *spill.Refs
	last  uint64

	// Faults, for a while.
	full  bool // nothing can be written
	shaky bool // reads fail, for no lasting reason
}

// spillFile is one file. It goes with its last object.
type spillFile struct {
	data   map[uint64][]byte // by offset
	rotten error             // what its reads give
}

func newSpillStorage(n *Node) *spillStorage {
	return &spillStorage{n: n, files: make(map[uint64]*spillFile), refs: spill.NewRefs()}
}

// write writes objects into a file, as they are now.
func (s *spillStorage) write(items []objectstore.SpillItem) ([]spill.Location, error) {
	if s.full {
		return nil, errs.New(errs.CodeOutOfDisk, "no spill target has room")
	}
	s.last++
	f := &spillFile{data: make(map[uint64][]byte)}
	s.files[s.last] = f
	var out []spill.Location
	off := uint64(64)
	for _, it := range items {
		f.data[off] = slices.Clone(s.n.memory.at(it.Place, it.Extent))
		l := spill.Location{File: s.last, Off: off, Size: it.Extent.Size}
		s.refs.Add(l)
		out = append(out, l)
		off += it.Extent.Size + 64
	}
	return out, nil
}

// copy writes objects of files anew that were there when it was asked for.
func (s *spillStorage) copy(objs []spill.Copy, held []*spillFile) ([]spill.Location, error) {
	if s.full {
		return nil, errs.New(errs.CodeOutOfDisk, "no spill target has room")
	}
	s.last++
	to := &spillFile{data: make(map[uint64][]byte)}
	var out []spill.Location
	off := uint64(64)
	for i, o := range objs {
		data := make([]byte, o.From.Size)
		if err := s.read(o.From, held[i], data); err != nil {
			return nil, err
		}
		to.data[off] = data
		out = append(out, spill.Location{File: s.last, Off: off, Size: o.From.Size})
		off += o.From.Size + 64
	}
	s.files[s.last] = to
	for _, l := range out {
		s.refs.Add(l)
	}
	return out, nil
}

// held is an object's file, which stays readable for who has begun to read it.
func (s *spillStorage) held(l spill.Location) *spillFile { return s.files[l.File] }

// read fills dst with a spilled object.
func (s *spillStorage) read(l spill.Location, f *spillFile, dst []byte) error {
	switch {
	case f == nil:
		return fmt.Errorf("file %d: %w", l.File, spill.ErrMissing)
	case f.rotten != nil:
		return f.rotten
	case s.shaky && s.n.w.rng.IntN(4) == 0:
		return errs.New(errs.CodeUnknown, "a read of file %d failed", l.File)
	}
	copy(dst, f.data[l.Off])
	return nil
}

func (s *spillStorage) remove(l spill.Location) {
	if last, _ := s.refs.Drop(l); last {
		delete(s.files, l.File)
	}
}

// recover counts anew which objects are there, drops files without any, and gives the sizes of the others.
func (s *spillStorage) recover(live []spill.Location) map[spill.FileKey]uint64 {
	s.refs = spill.NewRefs()
	for _, l := range live {
		s.refs.Add(l)
	}
	maps.DeleteFunc(s.files, func(id uint64, _ *spillFile) bool { return !s.refs.Has(spill.FileKey{File: id}) })
	sizes := make(map[spill.FileKey]uint64)
	for id, f := range s.files {
		n := uint64(format.Overhead)
		for _, data := range f.data {
			n += format.Footprint(uint64(len(data)))
		}
		sizes[spill.FileKey{File: id}] = n
	}
	return sizes
}

// rot spoils a file; false: there is none.
func (s *spillStorage) rot() bool {
	all := slices.Sorted(maps.Keys(s.files))
	if len(all) == 0 {
		return false
	}
	id := all[s.n.w.rng.IntN(len(all))]
	s.files[id].rotten = fmt.Errorf("file %d: %w", id, spill.ErrCorrupt)
	return true
}

func (s *spillStorage) processLost() { s.full, s.shaky = false, false }
