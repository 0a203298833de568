package shell

import (
	"errors"
	"fmt"
	"os"

	"mobula/internal/pidfd"
	"mobula/internal/safefs"
	"mobula/objectstore/alloc"
	"mobula/objectstore/index"
	"mobula/objectstore/record"
	"mobula/objectstore/segment"
)

// A node that starts again may be told another size for its store than it left objects with: the default follows the machine's memory. The
// files are made longer or shorter where nothing is lost by it. Else it keeps its size, and says so.

// openLeft opens what an earlier node left, at the size asked for if that can be.
func openLeft(cfg segment.Config, o index.Owner) (*Memory, error) {
	asked := cfg.Size
	left, err := leftSize(cfg.Path)
	if err != nil {
		return nil, err
	}
	if left > 0 {
		cfg.Size, o.Segment = left, left
	}
	m, err := openMemory(cfg, o)
	if err != nil || cfg.Size == asked {
		return m, err
	}
	if err := m.fit(asked); err != nil {
		return nil, errors.Join(err, m.Close(false))
	}
	return m, nil
}

// leftSize is the size that the index says the files have; 0: there is none. A node that was killed while it changed
// the size leaves longer ones, whose end nothing is in.
func leftSize(path string) (uint64, error) {
	f, err := safefs.OpenFile(path+".index", os.O_RDONLY, 0)
	if err != nil {
		return 0, nil // whatever it is, opening it for good says so
	}
	defer func() { _ = f.Close() }() // only read
	was, err := index.ReadOwner(f)
	if err != nil {
		return 0, nil // as above
	}
	size := was.Segment
	for _, p := range filesAt(path) {
		_ = cutTo(p, size) // one that cannot be cut is removed, and said, when it is opened for good
	}
	return size, nil
}

func cutTo(path string, size uint64) error {
	f, err := safefs.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil // opening it for good says so
	}
	defer func() { _ = f.Close() }() // nothing was written
	if st, err := f.Stat(); err == nil && st.Size() > int64(size) {
		if err := f.Truncate(int64(size)); err != nil {
			return fmt.Errorf("size %s to %d bytes: %w", path, size, err)
		}
	}
	return nil
}

// fit gives the files the size asked for if everything in it can stay.
func (m *Memory) fit(asked uint64) error {
	was := m.Size()
	if why := m.confined(asked); why != nil {
		m.Kept = fmt.Errorf("the store has %d bytes, as when the node last ran, and not the %d asked for: %w", was, asked, why)
		return nil
	}
	// No file is shorter than the index says.
	if asked > was {
		return errors.Join(m.resize(asked), m.Index.Resize(asked))
	}
	return errors.Join(m.Index.Resize(asked), m.resize(asked))
}

// confined tells why the files cannot have another size.
func (m *Memory) confined(size uint64) error {
	fits := alloc.New(size)
	for _, e := range m.Index.Replay() {
		switch {
		case e.State == record.StateClient:
			if !pidfd.Gone(int(e.PID)) {
				return fmt.Errorf("process %d has them mapped still", e.PID)
			}
		case e.State == record.StateSealed && e.Resident && e.File == 0 && !e.Spilled:
			if err := fits.Restore(e.Block); err != nil {
				return fmt.Errorf("object %v, for one, lies beyond that", e.ID)
			}
		}
	}
	return nil
}
