package node

import (
	"sync"

	"mobula/internal/ids"
	"mobula/raylet/pool"
)

// leaseMark remembers the highest lease ever granted: a new scheduler begins above it.
type leaseMark struct {
	mu   sync.Mutex
	last ids.LeaseID // guarded by mu
}

func (m *leaseMark) note(l ids.LeaseID) {
	m.mu.Lock()
	m.last = max(m.last, l)
	m.mu.Unlock()
}

// next is the first lease of a new scheduler. It leaves room for grants that the old one
// had made and nobody has seen.
func (m *leaseMark) next() ids.LeaseID {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.last += 1 << 16
	return m.last
}

// workerMark does the same for the numbers of worker processes.
type workerMark struct {
	mu   sync.Mutex
	last pool.WorkerID // guarded by mu
}

func (m *workerMark) note(w pool.WorkerID) {
	m.mu.Lock()
	m.last = max(m.last, w)
	m.mu.Unlock()
}

func (m *workerMark) next() pool.WorkerID {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.last
}
