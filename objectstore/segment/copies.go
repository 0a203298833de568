package segment

import (
	"os"
	"unsafe"

	"golang.org/x/sys/unix"

	"mobula/internal/errs"
)

// A copy of another job's object comes and goes with its readers. Where one was mapped, nothing is left but addresses, which the next of its
// length gets: a reader that has no right to be there any more reads zeros and does not end its process.

// AddCopy maps a sealed file announced by wire.MapFile, read-only. A number that is mapped already stays as it is.
func (m *Mapping) AddCopy(file uint32, f *os.File, size uint64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, ok := m.files[file]; ok {
		return nil
	}
	st, err := f.Stat()
	if err != nil {
		return unavailable("stat: %v", err)
	}
	if size == 0 || size > uint64(st.Size()) || uint64(int(size)) != size {
		return errs.New(errs.CodeProtocol, "mapping of %d bytes of a file of %d", size, st.Size())
	}
	var at unsafe.Pointer
	flags := unix.MAP_SHARED
	if l := m.spares[int(size)]; len(l) > 0 {
		at, flags = unsafe.Pointer(unsafe.SliceData(l[len(l)-1])), flags|unix.MAP_FIXED
	}
	p, err := unix.MmapPtr(int(f.Fd()), 0, at, uintptr(size), unix.PROT_READ, flags)
	if err != nil {
		return unavailable("map %d bytes read-only: %v", size, err)
	}
	if l := m.spares[int(size)]; at != nil {
		if m.spares[int(size)] = l[:len(l)-1]; len(l) == 1 {
			delete(m.spares, int(size))
		}
	}
	m.files[file] = &area{ro: unsafe.Slice((*byte)(p), int(size))}
	return nil
}

// DropCopy gives a copy's memory up. Its addresses stay taken, and read as zeros.
func (m *Mapping) DropCopy(file uint32) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	a := m.files[file]
	if a == nil || a.file != nil {
		return nil
	}
	delete(m.files, file)
	p := unsafe.Pointer(unsafe.SliceData(a.ro))
	if _, err := unix.MmapPtr(-1, 0, p, uintptr(len(a.ro)), unix.PROT_READ, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_NORESERVE|unix.MAP_FIXED); err != nil {
		return unavailable("unmap a copy of %d bytes: %v", len(a.ro), err)
	}
	if m.spares == nil {
		m.spares = make(map[int][][]byte)
	}
	m.spares[len(a.ro)] = append(m.spares[len(a.ro)], a.ro)
	return nil
}

func munmapAt(b []byte) error {
	return unix.MunmapPtr(unsafe.Pointer(unsafe.SliceData(b)), uintptr(len(b)))
}
