package shell

import (
	"context"
	"errors"
	"fmt"
	"time"

	"mobula/internal/errs"
	"mobula/objectstore/spill"
	"mobula/objectstore/spill/format"
	"mobula/objectstore/spill/storage"
)

// run does a job's I/O, on a goroutine of its own.
func (s *Spiller) run(t *target, j *job) {
	id := j.id
	ctx, cancel := context.WithTimeout(s.io, s.cfg.IOTimeout)
	defer cancel()
	var err error
	switch j.kind {
	case spill.Write:
		err = s.runWrite(ctx, t, j)
	case spill.Read:
		err = s.runRead(ctx, t, j)
	case spill.Remove:
		err = guard(func() error { return t.storage.Delete(ctx, j.file) })
		s.mu.Lock()
		j.running = false
		if err == nil {
			delete(s.jobs, id)
			s.stats.FilesDeleted++
		}
		s.mu.Unlock()
	}
	t.ref.Deliver(spill.Finished{ID: id, Err: err})
}

func (s *Spiller) runWrite(ctx context.Context, t *target, j *job) error {
	st := format.NewStream(format.Header{Session: s.cfg.Session, Target: t.number, File: j.file}, j.items, s.bufs)
	if j.from != nil {
		st.ReadWith(func(n int, off uint64, p []byte) error { return s.readPart(ctx, j.from[n], off, p) })
	}
	begun, file := time.Now(), j.file
	err := guard(func() error { return t.storage.Put(ctx, file, st) })
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stats.WriteTime += time.Since(begun)
	if j.abandoned {
		if err == nil && !s.closed {
			s.deleteFile(spill.FileKey{Target: t.n, File: file})
		}
		return err
	}
	if st.Err() != nil { // it is not this target's fault
		delete(s.jobs, j.id)
		s.router.Settled(j.target, j.size, false)
		s.fail(j, copyError(st.Err()))
		return nil
	}
	if err != nil {
		j.running = false // the core refuses it, or a new core tries it again
		return err
	}
	for i, e := range st.Entries() {
		j.group.locs[j.first+i] = spill.Location{Target: j.target, File: j.file, Off: e.Off, Size: e.Size, CRC: e.CRC}
		s.stats.BytesWritten += e.Size
	}
	s.stats.ObjectsWritten += uint64(len(j.items))
	s.stats.FilesWritten++
	delete(s.jobs, j.id)
	s.router.Settled(j.target, j.size, true)
	j.group.files = append(j.group.files, spill.FileKey{Target: j.target, File: j.file})
	s.step(j.group)
	s.moved()
	return nil
}

// readPart reads a part of an object that is copied.
func (s *Spiller) readPart(ctx context.Context, l spill.Location, off uint64, p []byte) error {
	_, err := s.targets[l.Target].storage.Read(ctx, l.File, l.Off+off, p)
	return err
}

// copyError is why an object could not be copied, as errors of reads are.
func copyError(err error) error {
	if errors.Is(err, format.ErrChanged) {
		return fmt.Errorf("%w: %w", err, spill.ErrCorrupt)
	}
	return err
}

func (s *Spiller) runRead(ctx context.Context, t *target, j *job) error {
	begun := time.Now()
	if len(j.with) > 0 && s.runReads(ctx, t, j) {
		s.mu.Lock()
		s.stats.ReadTime += time.Since(begun)
		s.mu.Unlock()
		return nil
	}
	for _, j := range append([]*job{j}, j.with...) { // alone; or each by itself, to find which one fails
		var crc uint32
		err := guard(func() (err error) {
			crc, err = t.storage.Read(ctx, j.loc.File, j.loc.Off, j.dst)
			return err
		})
		s.answer(t, j, crc, err)
	}
	s.mu.Lock()
	s.stats.ReadTime += time.Since(begun)
	s.mu.Unlock()
	return nil
}

// runReads reads j and the reads joined to it in one request; false if that did not work.
func (s *Spiller) runReads(ctx context.Context, t *target, j *job) bool {
	all := append([]*job{j}, j.with...)
	parts := make([]storage.Part, len(all))
	for i, j := range all {
		parts[i] = storage.Part{Off: j.loc.Off, Dst: j.dst}
	}
	if guard(func() error { return t.storage.ReadMany(ctx, j.loc.File, parts) }) != nil {
		return false
	}
	for i, j := range all {
		s.answer(t, j, parts[i].CRC, nil)
	}
	return true
}

// answer ends a read.
func (s *Spiller) answer(t *target, j *job, crc uint32, err error) {
	if err == nil && crc != j.loc.CRC {
		err = fmt.Errorf("%d bytes at %d of file %d on %s: checksum %08x, want %08x: %w",
			j.loc.Size, j.loc.Off, j.loc.File, t.url.Redacted(), crc, j.loc.CRC, spill.ErrCorrupt)
	}
	s.mu.Lock()
	delete(s.jobs, j.id)
	s.release(j)
	s.count(err)
	if err == nil {
		s.stats.BytesRead += j.loc.Size
		s.stats.ObjectsRead++
	}
	s.mu.Unlock()
	j.read(err)
	s.mu.Lock()
	s.moved() // after the callback, so that Recover's caller has every answer
	s.mu.Unlock()
}

// guard turns a panic of a storage into an error.
func guard(f func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = errs.New(errs.CodePanic, "spill storage panicked: %v", v)
		}
	}()
	return f()
}
