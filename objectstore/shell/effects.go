package shell

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"mobula/actors"
	"mobula/internal/ids"
	"mobula/objectstore"
	"mobula/objectstore/segment"
	"mobula/objectstore/spill"
	"mobula/wire"
)

// do carries out one effect.
func (s *Store) do(self *actors.Ref[objectstore.Event], f objectstore.Effect) {
	switch e := f.(type) {
	case objectstore.ToClient:
		var file *os.File
		if e.File != 0 {
			file = s.files.get(e.File)
		}
		s.o.ToClient(e.Client, e.Msg, file)
	case objectstore.ToOwner:
		s.o.ToOwner(e.Job, e.Msg)
	case objectstore.WriteRecord:
		had := s.o.Memory.Index.Soon()
		if err := s.unwritten.write(s.o.Memory.Index, e.Slot, &e.Record); err != nil {
			s.log.Warn("object store index: a record is missing, its object would not survive the node's process", "object", e.Record.ID, "err", err)
		}
		if has := s.o.Memory.Index.Soon(); has > had {
			self.Deliver(objectstore.IndexSize{Bytes: has})
		}
	case objectstore.ClearRecord:
		if err := s.unwritten.clear(s.o.Memory.Index, e.Slot); err != nil {
			s.log.Warn("object store index: a record stays", "slot", e.Slot, "err", err)
		}
	case objectstore.SpillWrite:
		s.spillWrite(self, e)
	case objectstore.SpillCopy:
		s.io.Add(1)
		s.o.Spiller.Copy(e.Objects, func(l []spill.Location, err error) {
			s.io.Done()
			self.Deliver(objectstore.SpillDone{Job: e.Job, Locs: l, Err: err})
		})
	case objectstore.SpillRead:
		s.spillRead(self, e)
	case objectstore.SpillRemove:
		if s.ready {
			s.o.Spiller.Remove(e.Locs)
		} else {
			s.removals = append(s.removals, e.Locs...)
		}
	case objectstore.Reserve:
		if err := s.mapJob(e.Place); err != nil {
			self.Deliver(objectstore.ReserveDone{Job: e.Job, Err: err})
			return
		}
		s.reserves.Add(1)
		s.background(self, func() objectstore.Event {
			defer s.reserves.Done()
			return objectstore.ReserveDone{Job: e.Job, Err: s.reserve(e)}
		})
	case objectstore.Punch:
		s.punch(e)
	case objectstore.DropSegment:
		s.dropSegment(e.Place)
	case objectstore.AllowSegment:
		s.o.Memory.allow(e.Place)
	case objectstore.CopyObject:
		s.copyObject(self, e)
	case objectstore.Import:
		s.fetch(self, e)
	case objectstore.Exported:
		s.serve(self, e)
	case objectstore.CreateFallback:
		s.background(self, func() objectstore.Event { return s.fallback(e) })
	case objectstore.DropFile:
		s.dropFile(e)
	case objectstore.CopyIn:
		s.copyIn(e)
	case objectstore.Remember:
		s.notes.Put(e)
	case objectstore.Forget:
		s.notes.Drop(e.Key)
	case objectstore.SetTimer:
		s.setTimer(self, e.At)
	case objectstore.Log:
		s.log.Warn(e.Msg, "err", e.Err)
	case objectstore.RecoverSpill:
		s.recover(self, e.Live)
	case objectstore.SpillReady:
		s.ready = true
		if len(s.removals) > 0 {
			s.o.Spiller.Remove(s.removals)
			s.removals = nil
		}
	default:
		panic(fmt.Sprintf("object store: no such effect: %T", f))
	}
}

// background does work that may take a while and posts what came of it. A stop waits for it.
func (s *Store) background(self *actors.Ref[objectstore.Event], work func() objectstore.Event) {
	s.io.Add(1)
	go func() {
		ev := work()
		s.io.Done()
		self.Deliver(ev)
	}()
}

func (s *Store) spillWrite(self *actors.Ref[objectstore.Event], e objectstore.SpillWrite) {
	items := make([]spill.Item, len(e.Items))
	for i, it := range e.Items {
		data, err := s.slice(it.Place, it.Extent, false)
		if err != nil {
			self.Deliver(objectstore.SpillDone{Job: e.Job, Err: err})
			return
		}
		items[i] = spill.Item{ID: it.ID, Attempt: it.Attempt, Data: data}
	}
	s.io.Add(1)
	s.o.Spiller.Write(items, func(l []spill.Location, err error) {
		s.io.Done()
		self.Deliver(objectstore.SpillDone{Job: e.Job, Locs: l, Err: err})
	})
}

func (s *Store) spillRead(self *actors.Ref[objectstore.Event], e objectstore.SpillRead) {
	dst, err := s.slice(e.Place, e.Extent, true)
	if err != nil {
		self.Deliver(objectstore.RestoreDone{Job: e.Job, Err: err})
		return
	}
	s.io.Add(1)
	s.o.Spiller.Read(e.Loc, dst, func(err error) {
		s.io.Done()
		self.Deliver(objectstore.RestoreDone{Job: e.Job, Err: err})
	})
}

// fallback makes a file outside the segment, away from the actor.
func (s *Store) fallback(e objectstore.CreateFallback) objectstore.Event {
	f, path, err := s.o.Spiller.Fallback(e.Size, e.Last)
	if err != nil {
		return objectstore.FallbackDone{Job: e.Job, Err: err}
	}
	n := s.files.number()
	if err := s.mapping.Add(n, f, e.Size); err != nil {
		s.o.Spiller.Release(path)
		return objectstore.FallbackDone{Job: e.Job, Err: errors.Join(err, f.Close())}
	}
	s.files.add(n, f, path)
	return objectstore.FallbackDone{Job: e.Job, File: n, Path: path}
}

func (s *Store) dropFile(e objectstore.DropFile) {
	f := s.files.take(e.File)
	if f != nil {
		emptied(f) // the clients that were told of it have it mapped, which would hold its blocks though it is unlinked
	}
	s.o.Spiller.Release(e.Path)
	if err := s.mapping.Drop(e.File); err != nil {
		s.log.Warn("object store: a fallback file could not be unmapped", "path", e.Path, "err", err)
	}
	if f != nil {
		_ = f.Close() // read through its mapping only
	}
}

// emptied gives the blocks of a file back to its disk. Who has it mapped reads zeros from then on. A file system that
// cannot do it keeps them until nobody has the file mapped.
func emptied(f *os.File) {
	st, err := f.Stat()
	if err != nil || st.Size() == 0 {
		return
	}
	for err = unix.EINTR; err == unix.EINTR; { // a disk may take long enough for a signal of the runtime to come
		err = unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, 0, st.Size())
	}
}

func (s *Store) reserve(e objectstore.Reserve) error {
	seg, err := s.o.Memory.Segment(e.Place)
	switch {
	case err != nil:
		return err
	case e.Look:
		return seg.CanReserve(toRanges(e.Ranges))
	}
	return seg.Reserve(toRanges(e.Ranges))
}

func (s *Store) punch(e objectstore.Punch) {
	for _, r := range e.Ranges {
		seg := s.o.Memory.known(ids.JobID(r.Owner))
		if seg == nil {
			continue // nothing has memory there
		}
		if err := seg.Punch([]segment.Range{{Off: r.Off, Size: r.Size}}); err != nil {
			s.log.Warn("object store: memory could not be given back", "job", ids.JobID(r.Owner), "err", err)
		}
	}
}

func (s *Store) dropSegment(job ids.JobID) {
	m := s.jobs[job]
	delete(s.jobs, job)
	err := s.o.Memory.drop(job)
	if m != nil {
		err = errors.Join(err, m.Close())
	}
	if err != nil {
		s.log.Warn("object store: the file of a job that is over could not be removed", "job", job, "err", err)
	}
}

// copyObject copies bytes between the files of two jobs, away from the actor.
func (s *Store) copyObject(self *actors.Ref[objectstore.Event], e objectstore.CopyObject) {
	src, err := s.slice(e.From, e.Of, false)
	var dst []byte
	if err == nil {
		dst, err = s.slice(e.Place, e.Extent, true)
	}
	if err != nil {
		self.Deliver(objectstore.RestoreDone{Job: e.Job, Err: err})
		return
	}
	s.copies.Add(1)
	s.background(self, func() objectstore.Event {
		defer s.copies.Done()
		segment.Copy(dst, src)
		return objectstore.RestoreDone{Job: e.Job}
	})
}

func (s *Store) copyIn(e objectstore.CopyIn) {
	for _, p := range e.Parts {
		dst, err := s.slice(e.Place, wire.Extent{File: e.Extent.File, Off: e.Extent.Off + p.Off, Size: uint64(len(p.Data))}, true)
		if err != nil {
			panic(err)
		}
		copy(dst, p.Data)
	}
}
