package objectstore

import (
	"errors"
	"os"

	"mobula/internal/errs"
	"mobula/internal/safefs"
	"mobula/objectstore/index"
	"mobula/objectstore/segment"
)

// Mapping is a client's access to the segment.
type Mapping = segment.Mapping

// OpenMapping maps the segment that came with wire.Welcome, of SegmentSize bytes.
func OpenMapping(f *os.File, size uint64) (*Mapping, error) { return segment.OpenMapping(f, size) }

// Memory is what a store keeps outside its core: the segment and the index beside it.
type Memory struct {
	Segment *segment.Segment
	Index   *index.Index
	// Kept says why the segment has the size that it was left with, not the one that was asked for; nil: it has that.
	Kept error
	// Removed says what was wrong with what an earlier node left, where it had to go; nil: nothing had to.
	Removed error
	path    string
}

// OpenMemory makes the segment and its index, or finds those that a killed node of the same path
// left. What is left keeps the size that it has where it could not all be kept at the one asked for; what is
// damaged is removed first, and what only the memory of another run of the machine held is forgotten. An empty path means memory
// that goes with the process; whose it is does not matter then.
func OpenMemory(cfg segment.Config, o index.Owner) (*Memory, error) {
	o.Segment = cfg.Size
	if cfg.Path == "" {
		return openMemory(cfg, o)
	}
	m, err := openLeft(cfg, o)
	if err == nil && m.Segment.Found() == indexFound(m.Index) {
		return m, nil
	}
	if err != nil && !errors.Is(err, errs.ErrInvalid) && !errors.Is(err, index.ErrCorrupt) {
		return nil, err
	}
	removed := err
	if m != nil {
		if removed = errLone; !m.Segment.Found() {
			removed = errNoSegment
		}
		err = m.Close(true)
	} else {
		err = errors.Join(removeFile(cfg.Path), removeFile(cfg.Path+".index"))
	}
	if err != nil {
		return nil, errs.New(errs.CodeSegmentUnavailable, "remove what an earlier node left at %s: %v", cfg.Path, err)
	}
	if m, err = openMemory(cfg, o); err == nil && removed != errLone {
		m.Removed = removed
	}
	return m, err
}

// Of a segment without a word in its index nothing can be known: its node was killed before it held anything.
var (
	errLone      = errors.New("a segment without an index")
	errNoSegment = errors.New("an index without its segment")
)

func openMemory(cfg segment.Config, o index.Owner) (*Memory, error) {
	seg, err := segment.Open(cfg)
	if err != nil {
		return nil, err
	}
	m := &Memory{Segment: seg, path: cfg.Path}
	if cfg.Path == "" {
		m.Index, err = index.NewMemfd(seg.Size())
	} else {
		m.Index, err = openIndex(cfg.Path+".index", o)
	}
	if err != nil {
		return nil, errors.Join(err, seg.Close(!seg.Found()))
	}
	return m, nil
}

func openIndex(path string, o index.Owner) (*index.Index, error) {
	f, err := safefs.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, errs.New(errs.CodeSegmentUnavailable, "open index: %v", err)
	}
	if err := lockIndex(f, path); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return index.Open(f, o)
}

// indexFound tells whether an index has ever been written to.
func indexFound(x *index.Index) bool { return x.Windows() > 0 }

func removeFile(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// Close closes both; with remove nothing stays for a next node to find.
func (m *Memory) Close(remove bool) error {
	var es []error
	if remove && m.path != "" {
		es = append(es, removeFile(m.path+".index"))
	}
	return errors.Join(append(es, m.Index.Close(), m.Segment.Close(remove))...)
}
