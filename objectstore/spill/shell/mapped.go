package shell

import (
	"context"
	"fmt"
	"os"

	"mobula/internal/errs"
	"mobula/objectstore/spill"
	"mobula/objectstore/spill/storage"
)

// mappedFile is a file that stands in for segment memory.
type mappedFile struct {
	target uint16
	size   uint64
}

// Fallback makes a file of size bytes, every block reserved, in the local target with the most room, to be mapped in place of segment memory. With
// last it may use the space that CapacityThreshold leaves free. It returns the file, open for reading and writing, and its path. It blocks for two
// system calls. The error matches errs.ErrOutOfDisk.
func (s *Spiller) Fallback(size uint64, last bool) (*os.File, string, error) {
	writing := s.writing()
	var best storage.Local
	var at uint16
	var room uint64
	why := "no target is a local directory"
	for _, t := range s.targets {
		local, ok := t.storage.(storage.Local)
		if !ok {
			continue
		}
		c, err := local.Probe(context.Background(), false)
		if err != nil {
			why = err.Error()
			continue
		}
		limit := uint64(s.cfg.CapacityThreshold * float64(c.Total))
		if last {
			limit = c.Total
		} else {
			limit -= min(limit, writing[t.n])
		}
		if free := limit - min(limit, c.Used); free >= size && (best == nil || free > room) {
			best, at, room = local, t.n, free
		} else if best == nil {
			why = fmt.Sprintf("%s: %d of %d bytes are used, the threshold is %g", t.url.Redacted(), c.Used, c.Total, s.cfg.CapacityThreshold)
		}
	}
	s.mu.Lock()
	closed := s.closed
	s.mu.Unlock()
	if closed {
		return nil, "", s.goneError()
	}
	if best == nil {
		return nil, "", s.noFallback(size, why)
	}
	s.mapping.Lock()
	defer s.mapping.Unlock()
	f, err := best.Allocate(size)
	if err != nil {
		return nil, "", s.noFallback(size, err.Error())
	}
	s.enter(f.Name(), mappedFile{at, size})
	s.targets[at].ref.Deliver(spill.Taken{Size: size})
	return f, f.Name(), nil
}

// writing is how many bytes are being written to each target: the used capacity may not include them yet.
func (s *Spiller) writing() map[uint16]uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := make(map[uint16]uint64)
	for _, j := range s.jobs {
		if j.kind == spill.Write && j.running {
			n[j.target] += j.size
		}
	}
	return n
}

func (s *Spiller) noFallback(size uint64, why string) error {
	err := errs.New(errs.CodeOutOfDisk, "no room for a mapped file of %d bytes: %s; free space or add a directory", size, why)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stats.OutOfDisk++
	s.complain("spill storage is full", err)
	return err
}

// Reopen opens a mapped file that a killed process of this session left, and its size. It comes
// before Recover, which deletes those that were not reopened.
func (s *Spiller) Reopen(path string) (*os.File, uint64, error) {
	err := fmt.Errorf("mapped file %s: no target has it: %w", path, spill.ErrMissing)
	for _, t := range s.targets {
		local, ok := t.storage.(storage.Local)
		if !ok {
			continue
		}
		f, e := local.Reopen(path)
		if e != nil {
			continue
		}
		info, e := f.Stat()
		if e != nil {
			_ = f.Close()
			err = fmt.Errorf("mapped file %s: %w", path, e)
			continue
		}
		s.enter(path, mappedFile{t.n, uint64(info.Size())})
		return f, uint64(info.Size()), nil
	}
	return nil, 0, err
}

func (s *Spiller) enter(path string, m mappedFile) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, dup := s.mapped[path]; dup {
		return
	}
	s.mapped[path] = m
	s.stats.Fallbacks++
}

// Release unlinks a mapped file. Descriptors and mappings of it stay valid.
func (s *Spiller) Release(path string) {
	s.mu.Lock()
	m, ok := s.mapped[path]
	delete(s.mapped, path)
	s.mu.Unlock()
	if !ok {
		return
	}
	if err := s.targets[m.target].storage.(storage.Local).Unlink(path); err != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.complain("mapped file could not be unlinked", err)
	}
}

// dropMapped unlinks every mapped file that nobody made or reopened.
func (s *Spiller) dropMapped() {
	s.mapping.Lock()
	defer s.mapping.Unlock()
	for _, t := range s.targets {
		local, ok := t.storage.(storage.Local)
		if !ok {
			continue
		}
		paths, err := local.Allocated()
		if err != nil {
			continue // List fails in the same way, and reports it
		}
		for _, p := range paths {
			s.mu.Lock()
			_, used := s.mapped[p]
			s.mu.Unlock()
			if !used {
				_ = local.Unlink(p)
			}
		}
	}
}

func (s *Spiller) releaseMapped(remove bool) {
	if !remove {
		return
	}
	s.mu.Lock()
	paths := make([]string, 0, len(s.mapped))
	for p := range s.mapped {
		paths = append(paths, p)
	}
	s.mu.Unlock()
	for _, p := range paths {
		s.Release(p)
	}
}
