package shell

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"os"
	"slices"
	"sync"
	"time"

	"mobula/actors"
	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/objectstore"
	"mobula/objectstore/alloc"
	"mobula/objectstore/record"
	"mobula/objectstore/segment"
	"mobula/objectstore/spill"
	spillshell "mobula/objectstore/spill/shell"
	"mobula/wire"
)

// Spiller is spill storage as the store uses it; that of package spill/shell is one. Each done is called once, from
// any goroutine; memory handed over belongs to the spiller until then. Recover is called when
// the store was (re)built and before anything else: it ends earlier I/O and drops what live does not name.
type Spiller interface {
	Write(items []spill.Item, done func([]spill.Location, error))
	Read(loc spill.Location, dst []byte, done func(error))
	Remove(locs []spill.Location)
	Fallback(size uint64, last bool) (*os.File, string, error)
	Reopen(path string) (*os.File, uint64, error)
	Has(loc spill.Location) bool // whether its target is one of the node's
	Release(path string)
	Copy(objs []spill.Copy, done func([]spill.Location, error))
	Recover(live []spill.Location) (sizes map[spill.FileKey]uint64)
}

var _ Spiller = (*spillshell.Spiller)(nil)

// Options are what a Store is made of. All but Peers, Logger and Policy must be set.
type Options struct {
	Config  objectstore.Config
	Memory  *Memory // stays the caller's, who closes it after the store
	Spiller Spiller
	// ToClient sends a message to a client, in order. f is not nil with wire.MapFile: the
	// descriptor to send along, which stays the store's. It must not block.
	ToClient func(c ids.ClientID, m wire.Msg, f *os.File)
	// ToOwner sends a message to a job's owner, in order. It must not block.
	ToOwner func(job ids.JobID, m objectstore.OwnerMsg)
	Peers   Peers         // nil: there are no other nodes
	Logger  *slog.Logger  // nil: silent
	Policy  actors.Policy // of restarts
}

// Store is the object store's actor.
type Store struct {
	o       Options
	ref     *actors.Ref[objectstore.Event]
	mapping *segment.Mapping               // of fallback files
	jobs    map[ids.JobID]*segment.Mapping // used on the actor's goroutine only
	log     *slog.Logger

	// What follows outlives the core and is used on the actor's goroutine only.
	core      *objectstore.Core
	epoch     uint64
	notes     objectstore.Notebook
	unwritten unwritten
	files     files
	serving   serving
	now       int64
	disarm    func()
	removals  []spill.Location // until spill storage is ready
	ready     bool             // it is
	recovery  chan struct{}    // closed when the last Recover has returned
	reserves  sync.WaitGroup   // of io, those that put memory behind files
	copies    sync.WaitGroup   // of io, what is written to jobs' files, but by spill storage: copies between them, and imports
	io        sync.WaitGroup   // work on the segment under way: reserving, spilling, reading
}

// Open starts a store. What a killed node left in the memory is taken over.
func Open(parent actors.Parent, o Options) (*Store, error) {
	if err := o.Config.Validate(); err != nil {
		return nil, errs.New(errs.CodeInvalid, "%v", err)
	}
	if o.Config.Limit != o.Memory.Size() {
		return nil, errs.New(errs.CodeInvalid, "store limit of %d bytes, memory of %d: they must be equal", o.Config.Limit, o.Memory.Size())
	}
	m := segment.NewMapping()
	s := &Store{o: o, mapping: m, jobs: make(map[ids.JobID]*segment.Mapping), log: o.Logger, recovery: make(chan struct{}), unwritten: make(unwritten)}
	close(s.recovery)
	s.files.open = make(map[uint32]*os.File)
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	if s.o.Peers == nil {
		s.o.Peers = alone{}
	}
	var err error
	s.ref, err = actors.Spawn(parent, actors.Spec[objectstore.Event, objectstore.Effect]{
		Kind: "objectstore", Name: "objectstore", New: s.build, Do: s.do, Stop: s.stop, Policy: o.Policy, Vital: objectstore.Vital,
		OnPoison: func(_ *actors.Ref[objectstore.Event], ev objectstore.Event, err error) { s.poisoned(ev, err) },
	})
	if err != nil {
		return nil, errors.Join(err, m.Close())
	}
	return s, nil
}

// Deliver hands an event over without blocking and without a bound; see actors.Ref.Deliver.
func (s *Store) Deliver(ev objectstore.Event) { s.ref.Deliver(ev) }

// Send hands an event over, waiting for room in the mailbox.
func (s *Store) Send(ctx context.Context, ev objectstore.Event) error { return s.ref.Send(ctx, ev) }

// Ref is the actor.
func (s *Store) Ref() *actors.Ref[objectstore.Event] { return s.ref }

// Stop stops the store; the memory stays open and the index complete.
func (s *Store) Stop(ctx context.Context) error { return s.ref.Stop(ctx) }

// Stats counts the store's state. It looks at every object: not for a hot path.
func (s *Store) Stats(ctx context.Context) (objectstore.Stats, error) {
	return ask(ctx, s, func(c *objectstore.Core) objectstore.Stats { return c.Stats() })
}

// List is Core.List.
func (s *Store) List(ctx context.Context, job ids.JobID, after ids.ObjectID, limit int) ([]objectstore.Info, error) {
	return ask(ctx, s, func(c *objectstore.Core) []objectstore.Info { return c.List(job, after, limit) })
}

// Why is Core.Why.
func (s *Store) Why(ctx context.Context, id ids.ObjectID) ([]string, error) {
	return ask(ctx, s, func(c *objectstore.Core) []string { return c.Why(id) })
}

// OldClients are clients of a killed node that may still hold pins, with their process ids: the
// caller reports each as joined again or gone.
func (s *Store) OldClients(ctx context.Context) ([]objectstore.ClientJoined, error) {
	return ask(ctx, s, func(c *objectstore.Core) []objectstore.ClientJoined { return c.OldClients() })
}

// Segment is the file of a job for a client of it, which has joined: what was decided before is done, so the file stays as long as the client.
func (s *Store) Segment(ctx context.Context, job ids.JobID) (*segment.Segment, error) {
	type answer struct {
		seg *segment.Segment
		err error
	}
	a, err := ask(ctx, s, func(*objectstore.Core) (a answer) {
		a.seg, a.err = s.o.Memory.Segment(job)
		return a
	})
	return a.seg, cmp.Or(err, a.err)
}

// ask runs a question on the store's goroutine.
func ask[T any](ctx context.Context, s *Store, f func(*objectstore.Core) T) (T, error) {
	answer := make(chan T, 1)
	var zero T
	if err := s.ref.Send(ctx, objectstore.Inspect{Do: func(c *objectstore.Core) { answer <- f(c) }}); err != nil {
		return zero, err
	}
	select {
	case v := <-answer:
		return v, nil
	case <-ctx.Done():
		return zero, context.Cause(ctx)
	case <-s.ref.Done():
		return zero, actors.ErrStopped
	}
}

// timed is the core as the actor sees it; it notes the time of each step.
type timed struct{ s *Store }

func (t timed) Step(now int64, ev objectstore.Event) []objectstore.Effect {
	t.s.now = now
	return t.s.core.Step(now, ev)
}

// build makes the core: empty, or from the index and the notes.
func (s *Store) build(start actors.Start) (actors.Core[objectstore.Event, objectstore.Effect], []objectstore.Event, error) {
	s.epoch++
	s.reserves.Wait() // what they bring the core before counted; this one gives it back
	entries := s.unwritten.over(s.o.Memory.Index.Replay())
	if n := s.o.Memory.Index.Torn(); n > 0 {
		s.log.Warn("object store index: damaged records were passed over", "count", n)
	}
	entries = s.present(entries)
	absent := s.absent(entries)
	for job := range held(entries) {
		if err := s.mapJob(job); err != nil {
			return nil, nil, err
		}
	}
	if start.Restart == 0 {
		if len(absent) > 0 {
			s.log.Warn("object store: what lies in places that the node spills to no more cannot be read", "objects", len(absent))
		}
		s.reopen(entries)
	} else {
		s.log.Warn("object store restarts from its index", "records", len(entries), "reason", start.Reason)
	}
	was := objectstore.Replay{Entries: entries, Connected: start.Restart > 0, Epoch: s.epoch, Notes: s.notes.List(), Files: s.files.paths(), Absent: absent, Draining: true}
	if s.core != nil {
		was.Counters = s.core.Counters() // nothing is decided by them
	}
	core, evs := objectstore.Rebuild(s.o.Config, was)
	s.core = core
	// Memory that no record names was reserved ahead, or held what is gone.
	if start.Restart > 0 || s.o.Memory.Found() {
		if err := s.o.Memory.keep(held(entries), start.Restart == 0); err != nil {
			s.log.Warn("memory of an earlier object store could not be given back", "err", err)
		}
	}
	s.ready = false
	return timed{s}, append(evs, objectstore.IndexSize{Bytes: s.o.Memory.Index.Soon()}, objectstore.RecoverSpill{Live: core.Live()}), nil
}

// recover tells spill storage what is still named, away from the actor: it may wait for I/O.
func (s *Store) recover(self *actors.Ref[objectstore.Event], live []spill.Location) {
	before, done, epoch := s.recovery, make(chan struct{}), s.epoch
	s.recovery = done
	go func() {
		defer close(done)
		<-before
		sizes := s.o.Spiller.Recover(live)
		s.copies.Wait() // no new core begins one before Drained
		self.Deliver(objectstore.Drained{Epoch: epoch, Sizes: sizes})
	}()
}

// reopen opens the fallback files that a killed node's records name.
func (s *Store) reopen(entries []record.Entry) {
	for _, e := range entries {
		if e.File == 0 || e.Path == "" {
			continue
		}
		f, size, err := s.o.Spiller.Reopen(e.Path)
		if err == nil {
			err = s.mapping.Add(e.File, f, size)
		}
		if err != nil {
			s.log.Warn("a fallback file of an earlier object store cannot be opened", "path", e.Path, "err", err)
			if f != nil {
				_ = f.Close()
			}
			continue
		}
		s.files.add(e.File, f, e.Path)
	}
}

// present takes the bytes in memory from the records of jobs whose files are not there.
func (s *Store) present(entries []record.Entry) []record.Entry {
	for i := range entries {
		if e := &entries[i]; e.Block.Size > 0 && e.File == 0 && s.o.Memory.known(e.Job) == nil {
			e.Resident, e.Block = false, alloc.Block{}
		}
	}
	return entries
}

// absent gives the slots of what was spilled to places that the node does not have any more, and is nowhere else. What is in memory too has no copy on disk then.
func (s *Store) absent(entries []record.Entry) map[uint32]bool {
	out := make(map[uint32]bool)
	for i := range entries {
		switch e := &entries[i]; {
		case !e.Spilled || s.o.Spiller.Has(e.Loc):
		case e.Resident:
			e.Spilled = false
		default:
			out[e.Slot] = true
		}
	}
	return out
}

// held lists the parts of the jobs' files that records name, in order.
func held(entries []record.Entry) map[ids.JobID][]segment.Range {
	out := make(map[ids.JobID][]segment.Range)
	for _, e := range entries {
		if e.File == 0 && e.Block.Size > 0 && (e.Resident || e.State == record.StateRestoring) {
			out[e.Job] = append(out[e.Job], segment.Range{Off: e.Block.Off, Size: e.Block.Size})
		}
	}
	for _, rs := range out {
		slices.SortFunc(rs, func(a, b segment.Range) int { return cmp.Compare(a.Off, b.Off) })
	}
	return out
}

// slice gives the bytes of an extent of a job's file, or of a fallback file.
func (s *Store) slice(job ids.JobID, e wire.Extent, write bool) ([]byte, error) {
	if e.File != 0 {
		return s.mapping.Slice(e, write)
	}
	m := s.jobs[job]
	if m == nil {
		return nil, errs.New(errs.CodeSegmentUnavailable, "the file of job %v is not mapped", job)
	}
	return m.Slice(e, write)
}

// mapJob maps a job's file, before anything lies in it.
func (s *Store) mapJob(job ids.JobID) error {
	if s.jobs[job] != nil {
		return nil
	}
	seg, err := s.o.Memory.Segment(job)
	if err != nil {
		return err
	}
	m, err := segment.OpenMapping(seg.File(), seg.Size())
	if err != nil {
		return err
	}
	s.jobs[job] = m
	return nil
}

// closeMappings unmaps everything.
func (s *Store) closeMappings() error {
	err := s.mapping.Close()
	for _, m := range s.jobs {
		err = errors.Join(err, m.Close())
	}
	return err
}

// stopWait bounds how long a stop waits for others to let go of segment memory.
const stopWait = 5 * time.Second

// stop ends the actor: nothing of the core is needed any more.
func (s *Store) stop() {
	idle := make(chan struct{})
	go func() {
		defer close(idle)
		<-s.recovery
		s.io.Wait()
	}()
	select {
	case <-idle:
	case <-time.After(stopWait):
		s.log.Warn("object store: work on the segment does not end, it stays mapped", "after", stopWait)
		return
	}
	if err := errors.Join(s.closeMappings(), s.files.close()); err != nil {
		s.log.Warn("object store: close mappings", "err", err)
	}
}

func (s *Store) setTimer(self *actors.Ref[objectstore.Event], at int64) {
	if s.disarm != nil {
		s.disarm()
	}
	s.disarm = self.After(time.Duration(at-s.now), objectstore.Tick{})
}

func toRanges(rs []alloc.Range) []segment.Range {
	out := make([]segment.Range, len(rs))
	for i, r := range rs {
		out[i] = segment.Range{Off: r.Off, Size: r.Size}
	}
	return out
}
