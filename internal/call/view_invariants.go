//go:build invariants

package call

import "golang.org/x/sys/unix"

// guardViews gives every view pages of its own, which become inaccessible when it is closed, so that the first use
// of a slice kept too long faults at its line. (Package worker does the same for arguments.)
const guardViews = true

type guarded struct {
	data  []byte
	pages []byte
}

func newGuard(data []byte) *guarded {
	if len(data) == 0 {
		return &guarded{data: data}
	}
	pages, err := unix.Mmap(-1, 0, len(data), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return &guarded{data: data} // no address space left: only the check is lost
	}
	copy(pages, data)
	_ = unix.Mprotect(pages, unix.PROT_READ)
	return &guarded{data: pages[:len(data):len(data)], pages: pages}
}

// close frees the memory but keeps the addresses, so that nothing else is mapped there.
func (g *guarded) close() {
	if g == nil || g.pages == nil {
		return
	}
	_ = unix.Madvise(g.pages, unix.MADV_DONTNEED)
	_ = unix.Mprotect(g.pages, unix.PROT_NONE)
	g.pages = nil
}
