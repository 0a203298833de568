package wired

import (
	"errors"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"

	"mobula/internal/errs"
)

// The page has a word that says how many concurrency groups there are, and then one for each: how many calls of it have begun.
const (
	word      = 8
	groupsMax = 1 << 16
)

// makePage makes a page in memory. Its size is sealed: who maps it cannot lose it under its feet.
func makePage(groups int) (*os.File, error) {
	if groups < 1 || groups > groupsMax {
		return nil, errs.New(errs.CodeInvalid, "a channel to an actor with %d concurrency groups", groups)
	}
	fd, err := unix.MemfdCreate("mobula-begun", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, errs.New(errs.CodeSegmentUnavailable, "memfd_create: %v", err)
	}
	f := os.NewFile(uintptr(fd), "begun calls")
	if err := f.Truncate(int64(pageSize(groups))); err != nil {
		return nil, errors.Join(errs.New(errs.CodeSegmentUnavailable, "a page for begun calls: %v", err), f.Close())
	}
	if _, err := unix.FcntlInt(f.Fd(), unix.F_ADD_SEALS, sealed); err != nil {
		return nil, errors.Join(errs.New(errs.CodeSegmentUnavailable, "seal a page for begun calls: %v", err), f.Close())
	}
	p, err := mapPage(f, true)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	atomic.StoreUint64(&p.all[0], uint64(groups))
	p.unmap()
	return f, nil
}

const sealed = unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_SEAL

func pageSize(groups int) int {
	size := os.Getpagesize()
	return (word*(groups+1) + size - 1) / size * size
}

// page is a mapping of it.
type page struct {
	mu    sync.Mutex
	raw   []byte   // guarded by mu; nil: it is not mapped any more
	all   []uint64 // guarded by mu: the same as words
	begun []uint64 // guarded by mu: those of the groups; when it is not mapped any more a copy
}

// mapPage maps a page that another process may have made.
func mapPage(f *os.File, write bool) (*page, error) {
	st, err := f.Stat()
	if err != nil {
		return nil, errs.New(errs.CodeInvalid, "a page for begun calls: %v", err)
	}
	if seals, err := unix.FcntlInt(f.Fd(), unix.F_GET_SEALS, 0); err != nil || seals&unix.F_SEAL_SHRINK == 0 {
		return nil, errs.New(errs.CodeInvalid, "a page for begun calls that may shrink")
	}
	if st.Size() < 2*word || st.Size() > int64(pageSize(groupsMax)) {
		return nil, errs.New(errs.CodeInvalid, "a page for begun calls of %d bytes", st.Size())
	}
	how := unix.PROT_READ
	if write {
		how |= unix.PROT_WRITE
	}
	raw, err := unix.Mmap(int(f.Fd()), 0, int(st.Size()), how, unix.MAP_SHARED)
	if err != nil {
		return nil, errs.New(errs.CodeSegmentUnavailable, "map a page for begun calls: %v", err)
	}
	return &page{raw: raw, all: unsafe.Slice((*uint64)(unsafe.Pointer(unsafe.SliceData(raw))), len(raw)/word)}, nil
}

// openPage maps the page of a channel, and closes its file.
func openPage(f *os.File, write bool) (*page, error) {
	p, err := mapCounts(f, write)
	_ = f.Close() // the mapping stays
	return p, err
}

// mapCounts maps a page with its counts.
func mapCounts(f *os.File, write bool) (*page, error) {
	p, err := mapPage(f, write)
	if err != nil {
		return nil, err
	}
	n := atomic.LoadUint64(&p.all[0])
	if n < 1 || n > uint64(len(p.all)-1) {
		p.unmap()
		return nil, errs.New(errs.CodeInvalid, "a page of %d words for the begun calls of %d concurrency groups", len(p.all), n)
	}
	p.begun = p.all[1 : 1+n : 1+n]
	return p, nil
}

// counts are what has begun, now or when it was unmapped.
func (p *page) counts() []uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.countsLocked()
}

func (p *page) countsLocked() []uint64 {
	if p.raw == nil {
		return slices.Clone(p.begun)
	}
	out := make([]uint64, len(p.begun))
	for i := range out {
		out[i] = atomic.LoadUint64(&p.begun[i])
	}
	return out
}

// unmap keeps the counts as they are.
func (p *page) unmap() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.raw == nil {
		return
	}
	p.begun = p.countsLocked()
	_ = unix.Munmap(p.raw) // it was mapped so
	p.raw, p.all = nil, nil
}
