package storage

import (
	"sync"
	"syscall"

	"mobula/objectstore/spill/format"
)

// Buffers is a free list of page-aligned buffers of format.BatchBytes, outside the garbage
// collector's heap. It keeps a few of them when idle.
type Buffers struct {
	mu   sync.Mutex
	free [][]byte
	keep int
	out  int
}

// NewBuffers makes a list that keeps up to keep buffers.
func NewBuffers(keep int) *Buffers { return &Buffers{keep: keep} }

// Get lends a buffer with undefined content.
func (b *Buffers) Get() []byte {
	b.mu.Lock()
	b.out++
	if n := len(b.free); n > 0 {
		p := b.free[n-1]
		b.free = b.free[:n-1]
		b.mu.Unlock()
		return p
	}
	b.mu.Unlock()
	p, err := syscall.Mmap(-1, 0, format.BatchBytes, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_PRIVATE|syscall.MAP_ANONYMOUS)
	if err != nil { // out of mappings: large allocations of the heap are page-aligned too
		return make([]byte, format.BatchBytes)
	}
	return p
}

// Put takes a buffer back.
func (b *Buffers) Put(p []byte) {
	b.mu.Lock()
	b.out--
	keep := len(b.free) < b.keep
	if keep {
		b.free = append(b.free, p)
	}
	b.mu.Unlock()
	if !keep {
		_ = syscall.Munmap(p) // EINVAL for one from the heap, which the garbage collector frees
	}
}

// Lent is how many buffers are lent.
func (b *Buffers) Lent() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.out
}

// Trim unmaps every idle buffer.
func (b *Buffers) Trim() {
	b.mu.Lock()
	free := b.free
	b.free = nil
	b.mu.Unlock()
	for _, p := range free {
		_ = syscall.Munmap(p)
	}
}
