package segment

import (
	"errors"
	"fmt"
	"os"
	"sync"

	"golang.org/x/sys/unix"

	"mobula/internal/errs"
	"mobula/wire"
)

// Mapping is a client's access to the segment and to the files announced to it: a
// read-only mapping for views and a writable one for creators. Slices of it stay valid until Close, or Drop of
// their file; the caller of these makes sure that none is in use.
type Mapping struct {
	mu    sync.RWMutex
	files map[uint32]*area // guarded by mu; 0 is the segment
}

// area is one file mapped twice.
type area struct {
	file   *os.File // open for writing, for Write
	ro, rw []byte
}

// NewMapping makes a Mapping without a job's file.
func NewMapping() *Mapping { return &Mapping{files: make(map[uint32]*area, 1)} }

// OpenMapping maps a segment of size bytes. It duplicates the file's descriptor; the caller keeps its own.
func OpenMapping(f *os.File, size uint64) (*Mapping, error) {
	m := NewMapping()
	if err := m.Add(0, f, size); err != nil {
		return nil, err
	}
	return m, nil
}

// Add maps a file announced by wire.MapFile. A number that is mapped already stays as it is.
func (m *Mapping) Add(file uint32, f *os.File, size uint64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, ok := m.files[file]; ok {
		return nil
	}
	a, err := openArea(f, size)
	if err != nil {
		return fmt.Errorf("file %d: %w", file, err)
	}
	m.files[file] = a
	return nil
}

func openArea(f *os.File, size uint64) (*area, error) {
	st, err := f.Stat()
	if err != nil {
		return nil, unavailable("stat: %v", err)
	}
	// An access to a page beyond the file's end would be a SIGBUS.
	if size == 0 || size > uint64(st.Size()) || uint64(int(size)) != size {
		return nil, errs.New(errs.CodeProtocol, "mapping of %d bytes of a file of %d", size, st.Size())
	}
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, unavailable("dup: %v", err)
	}
	a := &area{file: os.NewFile(uintptr(fd), f.Name())}
	if a.ro, err = unix.Mmap(fd, 0, int(size), unix.PROT_READ, unix.MAP_SHARED); err != nil {
		return nil, errors.Join(unavailable("map %d bytes read-only: %v", size, err), a.close())
	}
	if a.rw, err = unix.Mmap(fd, 0, int(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED); err != nil {
		return nil, errors.Join(unavailable("map %d bytes: %v", size, err), a.close())
	}
	return a, nil
}

func (a *area) close() error {
	var es []error
	for _, b := range [][]byte{a.ro, a.rw} {
		if b != nil {
			es = append(es, unix.Munmap(b))
		}
	}
	return errors.Join(append(es, a.file.Close())...)
}

// Map gives the bytes of an extent: from the read-only mapping, where a write faults, or
// with write from the writable one. The slice's capacity ends with the extent. If a large extent has no memory, as
// a store may grant it, Map first brings the memory on two threads; a lack of memory is an error then.
func (m *Mapping) Map(e wire.Extent, write bool) ([]byte, error) {
	b, err := m.Slice(e, write)
	if err == nil && write && len(b) >= parallelFrom && !resident(b) {
		err = populate(b)
	}
	return b, err
}

// Slice is Map for an extent that is known to have memory: it never waits.
func (m *Mapping) Slice(e wire.Extent, write bool) ([]byte, error) {
	m.mu.RLock()
	a := m.files[e.File]
	m.mu.RUnlock()
	if a == nil {
		return nil, errs.New(errs.CodeProtocol, "extent in file %d, which was not announced", e.File)
	}
	end := e.Off + e.Size
	if end < e.Off || end > uint64(len(a.ro)) {
		return nil, errs.New(errs.CodeProtocol, "extent [%d, +%d) outside the %d bytes of file %d", e.Off, e.Size, len(a.ro), e.File)
	}
	if write {
		return a.rw[e.Off:end:end], nil
	}
	return a.ro[e.Off:end:end], nil
}

// Drop unmaps a file; its slices must not be in use.
func (m *Mapping) Drop(file uint32) error {
	m.mu.Lock()
	a := m.files[file]
	delete(m.files, file)
	m.mu.Unlock()
	if a == nil {
		return nil
	}
	return a.close()
}

// Close unmaps everything. It is for the end of a client, when no slice is in use.
func (m *Mapping) Close() error {
	m.mu.Lock()
	files := m.files
	m.files = nil
	m.mu.Unlock()
	var es []error
	for _, a := range files {
		es = append(es, a.close())
	}
	return errors.Join(es...)
}
