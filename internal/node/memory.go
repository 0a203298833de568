package node

import (
	"errors"
	"os"
	"sync"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/objectstore/segment"
	"mobula/wire"
)

// memory is a job's, mapped when it is first used: most jobs use none in this process.
type memory struct {
	memories *memories
	job      ids.JobID

	mu     sync.Mutex
	m      *segment.Mapping // guarded by mu
	closed bool             // guarded by mu
}

// ofJob is the memory of a job's clients in this process.
func (t *memories) ofJob(job ids.JobID) *memory {
	t.mu.Lock()
	defer t.mu.Unlock()
	m := t.jobs[job]
	if m == nil {
		m = &memory{memories: t, job: job, closed: t.closed}
		if t.jobs == nil {
			t.jobs = make(map[ids.JobID]*memory)
		}
		t.jobs[job] = m
	}
	return m
}

// drop unmaps the memory of a job that is over.
func (t *memories) drop(job ids.JobID) error {
	t.mu.Lock()
	m := t.jobs[job]
	delete(t.jobs, job)
	t.mu.Unlock()
	if m == nil {
		return nil
	}
	return m.close()
}

// close unmaps everything.
func (t *memories) close() error {
	t.mu.Lock()
	jobs := t.jobs
	t.jobs, t.closed = nil, true
	t.mu.Unlock()
	var es []error
	for _, m := range jobs {
		es = append(es, m.close())
	}
	return errors.Join(es...)
}

func (m *memory) close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
	if m.m == nil {
		return nil
	}
	err := m.m.Close()
	m.m = nil
	return err
}

func (m *memory) open() (*segment.Mapping, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.m != nil {
		return m.m, nil
	}
	if m.closed {
		return nil, errs.New(errs.CodeShutdown, "job %v is over", m.job)
	}
	seg, err := m.memories.segment(m.job)
	if err != nil {
		return nil, err
	}
	m.m, err = segment.OpenMapping(seg.File(), seg.Size())
	return m.m, err
}

func (m *memory) Map(e wire.Extent, write bool) ([]byte, error) {
	v, err := m.open()
	if err != nil {
		return nil, err
	}
	return v.Map(e, write)
}

func (m *memory) Write(e wire.Extent, src []byte) error {
	v, err := m.open()
	if err != nil {
		return err
	}
	return v.Write(e, src)
}

func (m *memory) Add(file uint32, f *os.File, size uint64) error {
	v, err := m.open()
	if err != nil {
		return err
	}
	return v.Add(file, f, size)
}

func (m *memory) Drop(file uint32) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.m == nil {
		return nil // nothing was mapped, or all was unmapped
	}
	return m.m.Drop(file)
}
