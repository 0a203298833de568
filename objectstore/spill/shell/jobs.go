package shell

import (
	"fmt"
	"strings"
	"time"

	"mobula/internal/errs"
	"mobula/objectstore/spill"
)

// job is a request with its data. It is in Spiller.jobs from when a target is asked until the target has done or
// refused it: a target's core is rebuilt from there.
type job struct {
	id      uint64 // new with each target, and with each core that queues it
	kind    spill.Kind
	target  uint16
	size    uint64
	running bool

	abandoned bool // its I/O hangs, and its request was given to another target

	items []spill.Item     // write
	from  []spill.Location // of a write that copies: of each item, by the target's index
	group *group
	first int // index of its first item in the group
	tried map[uint16]error

	file uint64 // write, remove

	loc  spill.Location // read
	dst  []byte
	read func(error)
	held bool
	with []*job // reads joined to this one
	lead bool   // false: this read is joined to another
}

func (j *job) request() spill.Request {
	if j.kind == spill.Read {
		return spill.Request{ID: j.id, Kind: spill.Read, Size: j.loc.Size, File: j.loc.File, Off: j.loc.Off}
	}
	r := spill.Request{ID: j.id, Kind: j.kind, Size: j.size, Frees: j.from != nil}
	for i := range j.items {
		r.Largest = max(r.Largest, j.items[i].Len())
	}
	return r
}

// group is one call of Write or Copy.
type group struct {
	holds []spill.FileKey // that are copied from
	locs  []spill.Location
	files []spill.FileKey // written
	left  int
	epoch int // epoch of the spiller; Recover begins another
	err   error
	done  func([]spill.Location, error)
}

// route gives a write to the best target that has not refused it. s.mu is held.
func (s *Spiller) route(j *job) {
	for {
		n, ok := s.router.Pick(j.size, j.tried)
		if !ok {
			s.fail(j, s.outOfDisk(j))
			return
		}
		t := s.targets[n]
		j.target, j.file = n, t.nextFile
		t.nextFile++
		err := s.post(j)
		if err == nil {
			return
		}
		s.refused(j, err)
	}
}

func (s *Spiller) refused(j *job, why error) {
	s.router.Settled(j.target, j.size, false)
	if j.tried == nil {
		j.tried = make(map[uint16]error)
	}
	j.tried[j.target] = why
	s.stats.Refused++
}

// send gives a read or a delete to its target. s.mu is held.
func (s *Spiller) send(j *job) {
	if err := s.post(j); err != nil {
		s.fail(j, fmt.Errorf("spill target %s: %w", s.targets[j.target].url.Redacted(), err))
	}
}

// post enters the job and tells the target's actor.
func (s *Spiller) post(j *job) error {
	s.lastJob++
	j.id, j.running = s.lastJob, false
	s.jobs[j.id] = j
	err := s.targets[j.target].ref.Post(spill.Submit{Req: j.request()})
	if err != nil {
		delete(s.jobs, j.id)
	}
	return err
}

// fail ends a job that was not done. s.mu is held.
func (s *Spiller) fail(j *job, err error) {
	switch j.kind {
	case spill.Write:
		if j.group.err == nil {
			j.group.err = err
		}
		s.step(j.group)
		s.moved()
	case spill.Read:
		s.release(j)
		s.count(err)
		s.later(func() { j.read(err) })
		s.moved()
	case spill.Remove:
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
	if g.err == nil {
		for _, l := range g.locs {
			s.refs.Add(l)
		}
	}
	for _, k := range g.holds {
		if s.refs.Release(k) {
			s.deleteFile(k)
		}
	}
	if g.err != nil {
		for _, k := range g.files {
			s.deleteFile(k)
		}
		s.later(func() { g.done(nil, g.err) })
		return
	}
	for i, l := range g.locs {
		g.locs[i].Target = s.targets[l.Target].number
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

// moved counts the end of a write or a read, for callers that wait for all of them. s.mu is held.
func (s *Spiller) moved() {
	if s.moving--; s.moving == 0 && s.idle != nil {
		close(s.idle)
		s.idle = nil
	}
}

func (s *Spiller) release(j *job) {
	if j.held && s.refs.Release(j.loc.Key()) {
		s.deleteFile(j.loc.Key())
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

// complain logs at most once in LogEvery. s.mu is held.
func (s *Spiller) complain(msg string, err error) {
	if skipped, ok := s.limiter.allow(time.Now()); ok {
		s.log.Warn(msg, "err", err, "lines_left_out", skipped)
	}
}
