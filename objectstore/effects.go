package objectstore

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"sync"

	"golang.org/x/sys/unix"

	"mobula/actors"
	"mobula/internal/ids"
	"mobula/objectstore/segment"
	"mobula/objectstore/spill"
	"mobula/wire"
)

// do carries out one effect.
func (s *Store) do(self *actors.Ref[Event], f Effect) {
	switch e := f.(type) {
	case ToClient:
		var file *os.File
		if e.File != 0 {
			file = s.files.get(e.File)
		}
		s.o.ToClient(e.Client, e.Msg, file)
	case ToOwner:
		s.o.ToOwner(e.Job, e.Msg)
	case WriteRecord:
		had := s.o.Memory.Index.Soon()
		if err := s.unwritten.write(s.o.Memory.Index, e.Slot, &e.Record); err != nil {
			s.log.Warn("object store index: a record is missing, its object would not survive the node's process", "object", e.Record.ID, "err", err)
		}
		if has := s.o.Memory.Index.Soon(); has > had {
			self.Deliver(IndexTakes{has})
		}
	case ClearRecord:
		if err := s.unwritten.clear(s.o.Memory.Index, e.Slot); err != nil {
			s.log.Warn("object store index: a record stays", "slot", e.Slot, "err", err)
		}
	case SpillWrite:
		s.spillWrite(self, e)
	case SpillRead:
		s.spillRead(self, e)
	case SpillRemove:
		if s.ready {
			s.o.Spiller.Remove(e.Locs)
		} else {
			s.removals = append(s.removals, e.Locs...)
		}
	case Reserve:
		if err := s.mapJob(e.Place); err != nil {
			self.Deliver(ReserveDone{e.Job, err})
			return
		}
		s.reserves.Add(1)
		s.background(self, func() Event {
			defer s.reserves.Done()
			return ReserveDone{e.Job, s.reserve(e)}
		})
	case Punch:
		s.punch(e)
	case DropSegment:
		s.dropSegment(e.Place)
	case CopyObject:
		s.copyObject(self, e)
	case CreateFallback:
		s.background(self, func() Event { return s.fallback(e) })
	case DropFile:
		s.dropFile(e)
	case CopyIn:
		s.copyIn(e)
	case Remember:
		s.notes.put(e.Key, e.Event)
	case Forget:
		s.notes.drop(e.Key)
	case SetTimer:
		s.setTimer(self, e.At)
	case Log:
		s.log.Warn(e.Msg, "err", e.Err)
	case recoverSpill:
		s.recover(self, e.live)
	case spillReady:
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
func (s *Store) background(self *actors.Ref[Event], work func() Event) {
	s.io.Add(1)
	go func() {
		ev := work()
		s.io.Done()
		self.Deliver(ev)
	}()
}

// spillReady says that SpillRemove may be carried out again.
type spillReady struct{}

func (spillReady) storeEffect() {}

func (s *Store) spillWrite(self *actors.Ref[Event], e SpillWrite) {
	items := make([]spill.Item, len(e.Items))
	for i, it := range e.Items {
		data, err := s.slice(it.Place, it.Extent, false)
		if err != nil {
			self.Deliver(SpillDone{Job: e.Job, Err: err})
			return
		}
		items[i] = spill.Item{ID: it.ID, Attempt: it.Attempt, Data: data}
	}
	s.io.Add(1)
	s.o.Spiller.Write(items, func(l []spill.Location, err error) {
		s.io.Done()
		self.Deliver(SpillDone{e.Job, l, err})
	})
}

func (s *Store) spillRead(self *actors.Ref[Event], e SpillRead) {
	dst, err := s.slice(e.Place, e.Extent, true)
	if err != nil {
		self.Deliver(RestoreDone{e.Job, err})
		return
	}
	s.io.Add(1)
	s.o.Spiller.Read(e.Loc, dst, func(err error) {
		s.io.Done()
		self.Deliver(RestoreDone{e.Job, err})
	})
}

// fallback makes a file outside the segment, away from the actor.
func (s *Store) fallback(e CreateFallback) Event {
	f, path, err := s.o.Spiller.Fallback(e.Size, e.Last)
	if err != nil {
		return FallbackDone{Job: e.Job, Err: err}
	}
	n := s.files.number()
	if err := s.mapping.Add(n, f, e.Size); err != nil {
		s.o.Spiller.Release(path)
		return FallbackDone{Job: e.Job, Err: errors.Join(err, f.Close())}
	}
	s.files.add(n, f, path)
	return FallbackDone{Job: e.Job, File: n, Path: path}
}

func (s *Store) dropFile(e DropFile) {
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

func (s *Store) reserve(e Reserve) error {
	seg, err := s.o.Memory.Segment(e.Place)
	switch {
	case err != nil:
		return err
	case e.Look:
		return seg.Look(toRanges(e.Ranges))
	}
	return seg.Reserve(toRanges(e.Ranges))
}

func (s *Store) punch(e Punch) {
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
func (s *Store) copyObject(self *actors.Ref[Event], e CopyObject) {
	src, err := s.slice(e.From, e.Of, false)
	var dst []byte
	if err == nil {
		dst, err = s.slice(e.Place, e.Extent, true)
	}
	if err != nil {
		self.Deliver(RestoreDone{e.Job, err})
		return
	}
	s.copies.Add(1)
	s.background(self, func() Event {
		defer s.copies.Done()
		segment.Copy(dst, src)
		return RestoreDone{Job: e.Job}
	})
}

func (s *Store) copyIn(e CopyIn) {
	for _, p := range e.Parts {
		dst, err := s.slice(e.Place, wire.Extent{File: e.Extent.File, Off: e.Extent.Off + p.Off, Size: uint64(len(p.Data))}, true)
		if err != nil {
			panic(err)
		}
		copy(dst, p.Data)
	}
}

// files are the open fallback files; they outlive the core.
type files struct {
	mu   sync.Mutex
	last uint32              // guarded by mu
	open map[uint32]*os.File // guarded by mu
	path map[uint32]string   // guarded by mu
}

func (f *files) number() uint32 {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.last++
	return f.last
}

func (f *files) add(n uint32, file *os.File, path string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.path == nil {
		f.path = make(map[uint32]string)
	}
	f.open[n], f.path[n], f.last = file, path, max(f.last, n)
}

func (f *files) get(n uint32) *os.File {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.open[n]
}

func (f *files) take(n uint32) *os.File {
	f.mu.Lock()
	defer f.mu.Unlock()
	file := f.open[n]
	delete(f.open, n)
	delete(f.path, n)
	return file
}

func (f *files) paths() map[uint32]string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return maps.Clone(f.path)
}

func (f *files) close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	var es []error
	for _, file := range f.open {
		es = append(es, file.Close())
	}
	clear(f.open)
	return errors.Join(es...)
}

// notebook keeps what cores asked to remember, in order.
type notebook struct {
	notes map[NoteKey]noted
	seq   uint64
}

type noted struct {
	seq uint64
	ev  Event
}

func (n *notebook) put(k NoteKey, ev Event) {
	if n.notes == nil {
		n.notes = make(map[NoteKey]noted)
	}
	n.seq++
	n.notes[k] = noted{n.seq, ev}
}

func (n *notebook) drop(k NoteKey) { delete(n.notes, k) }

// list gives the notes in order, those of pins that are held first.
func (n *notebook) list() []Note {
	keys := slices.Collect(maps.Keys(n.notes))
	slices.SortFunc(keys, func(a, b NoteKey) int {
		x, y := n.notes[a], n.notes[b]
		return cmp.Or(cmp.Compare(rank(x.ev), rank(y.ev)), cmp.Compare(x.seq, y.seq))
	})
	out := make([]Note, len(keys))
	for i, k := range keys {
		out[i] = Note{k, n.notes[k].ev}
	}
	return out
}

func rank(ev Event) int {
	if _, ok := ev.(heldArgs); ok {
		return 0
	}
	return 1
}

func sortRanges(rs []segment.Range) {
	slices.SortFunc(rs, func(a, b segment.Range) int { return cmp.Compare(a.Off, b.Off) })
}
