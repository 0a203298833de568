package spill

import (
	"context"
	"fmt"
	"strings"
	"time"

	"mobula/internal/errs"
	"mobula/objectstore/spill/format"
	"mobula/objectstore/spill/storage"
)

// job is a request with what it moves. It is in Spiller.jobs from when a target is asked until the target
// has done or refused it: a target's core is built again from there.
type job struct {
	id      uint64 // new with each target, and with each core that queues it
	kind    kind
	target  uint16
	size    uint64
	running bool

	abandoned bool // its I/O hangs, and its request was given elsewhere

	items []Item // write
	group *group
	first int // of its items in the group
	tried map[uint16]error

	file uint64 // write, remove

	loc  Location // read
	dst  []byte
	read func(error)
	held bool
	with []*job // reads done with this one
	lead bool   // false: another read has this one with it
}

func (j *job) request() request {
	if j.kind == read {
		return request{id: j.id, kind: read, size: j.loc.Size, file: j.loc.File, off: j.loc.Off}
	}
	return request{id: j.id, kind: j.kind, size: j.size}
}

// group is one call of Write.
type group struct {
	locs  []Location
	files []fileKey // written
	left  int
	epoch int // of the spiller; Recover begins another
	err   error
	done  func([]Location, error)
}

// route gives a write to the best target that has not refused it. s.mu is held.
func (s *Spiller) route(j *job) {
	for {
		n, ok := s.router.pick(j.size, j.tried)
		if !ok {
			s.fail(j, s.outOfDisk(j))
			return
		}
		t := s.targets[n]
		j.target, j.file = n, t.nextFile
		t.nextFile++
		if err := s.post(j); err == nil {
			return
		} else {
			s.refused(j, err)
		}
	}
}

func (s *Spiller) refused(j *job, why error) {
	s.router.settled(j.target, j.size, false)
	if j.tried == nil {
		j.tried = make(map[uint16]error)
	}
	j.tried[j.target] = why
	s.stats.Refused++
}

// hand gives a read or a delete to its target. s.mu is held.
func (s *Spiller) hand(j *job) {
	if err := s.post(j); err != nil {
		s.fail(j, fmt.Errorf("spill target %s: %w", s.targets[j.target].url.Redacted(), err))
	}
}

// post enters the job and tells the target's actor.
func (s *Spiller) post(j *job) error {
	s.lastJob++
	j.id, j.running = s.lastJob, false
	s.jobs[j.id] = j
	err := s.targets[j.target].ref.Post(submit{j.request()})
	if err != nil {
		delete(s.jobs, j.id)
	}
	return err
}

// fail ends a job that was not done. s.mu is held.
func (s *Spiller) fail(j *job, err error) {
	switch j.kind {
	case write:
		if j.group.err == nil {
			j.group.err = err
		}
		s.step(j.group)
		s.moved()
	case read:
		s.release(j)
		s.count(err)
		s.later(func() { j.read(err) })
		s.moved()
	case remove:
		s.stats.FilesLeft++
	}
}

// step ends one file of a group; the last one ends the group. s.mu is held.
func (s *Spiller) step(g *group) {
	if g.left--; g.left > 0 {
		return
	}
	if g.err == nil && g.epoch != s.epoch {
		g.err = errSuperseded()
	}
	if g.err != nil {
		for _, k := range g.files {
			s.deleteFile(k)
		}
		s.later(func() { g.done(nil, g.err) })
		return
	}
	for _, l := range g.locs {
		s.refs.add(l)
	}
	s.later(func() {
		s.mu.Lock()
		superseded := g.epoch != s.epoch
		s.mu.Unlock()
		if superseded {
			g.done(nil, errSuperseded())
		} else {
			g.done(g.locs, nil)
		}
	})
}

func errSuperseded() error {
	return errs.New(errs.CodeCancelled, "the store was rebuilt while the object was on its way")
}

// moved ends a write or a read for those who wait for all of them. s.mu is held.
func (s *Spiller) moved() {
	if s.moving--; s.moving == 0 && s.idle != nil {
		close(s.idle)
		s.idle = nil
	}
}

func (s *Spiller) release(j *job) {
	if j.held && s.refs.release(key(j.loc)) {
		s.deleteFile(key(j.loc))
	}
}

func (s *Spiller) outOfDisk(j *job) error {
	var why strings.Builder
	for i, t := range s.targets {
		if err := j.tried[uint16(i)]; err != nil {
			fmt.Fprintf(&why, "; %s: %v", t.url.Redacted(), err)
		}
	}
	s.stats.OutOfDisk++
	err := errs.New(errs.CodeOutOfDisk, "%d bytes fit no spill target, free space or add a target%s", j.size, why.String())
	s.complain("spill storage is full", err)
	return err
}

// complain logs, not too often. s.mu is held.
func (s *Spiller) complain(msg string, err error) {
	if skipped, ok := s.limiter.allow(time.Now()); ok {
		s.log.Warn(msg, "err", err, "lines_left_out", skipped)
	}
}

// run does a job's I/O, on a goroutine of its own.
func (s *Spiller) run(t *target, j *job) {
	id := j.id
	ctx, cancel := context.WithTimeout(s.io, s.cfg.IOTimeout)
	defer cancel()
	var err error
	switch j.kind {
	case write:
		err = s.runWrite(ctx, t, j)
	case read:
		err = s.runRead(ctx, t, j)
	case remove:
		err = guard(func() error { return t.storage.Delete(ctx, j.file) })
		s.mu.Lock()
		j.running = false
		if err == nil {
			delete(s.jobs, id)
			s.stats.FilesDeleted++
		}
		s.mu.Unlock()
	}
	_ = t.ref.Post(finished{id, err}) // stopped: nobody counts any more
}

func (s *Spiller) runWrite(ctx context.Context, t *target, j *job) error {
	st := format.NewStream(format.Header{Session: s.cfg.Session, Target: j.target, File: j.file}, j.items, s.bufs)
	begun, file := time.Now(), j.file
	err := guard(func() error { return t.storage.Put(ctx, file, st) })
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stats.WriteTime += time.Since(begun)
	if j.abandoned {
		if err == nil && !s.closed {
			s.deleteFile(fileKey{t.n, file})
		}
		return err
	}
	if err != nil {
		j.running = false // the core refuses it, or a new one tries it again
		return err
	}
	for i, e := range st.Entries() {
		j.group.locs[j.first+i] = Location{Target: j.target, File: j.file, Off: e.Off, Size: e.Size, CRC: e.CRC}
		s.stats.BytesWritten += e.Size
	}
	s.stats.ObjectsWritten += uint64(len(j.items))
	s.stats.FilesWritten++
	delete(s.jobs, j.id)
	s.router.settled(j.target, j.size, true)
	j.group.files = append(j.group.files, fileKey{j.target, j.file})
	s.step(j.group)
	s.moved()
	return nil
}

func (s *Spiller) runRead(ctx context.Context, t *target, j *job) error {
	begun := time.Now()
	if len(j.with) > 0 && s.runReads(ctx, t, j) {
		s.mu.Lock()
		s.stats.ReadTime += time.Since(begun)
		s.mu.Unlock()
		return nil
	}
	for _, j := range append([]*job{j}, j.with...) { // alone, or each by itself to see which one fails
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

// runReads reads j and what is with it at once; false if that did not work.
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
			j.loc.Size, j.loc.Off, j.loc.File, t.url.Redacted(), crc, j.loc.CRC, ErrCorrupt)
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
	s.moved() // after the callback: Recover's caller has every answer
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
