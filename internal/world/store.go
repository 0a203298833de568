package world

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/objectstore"
	"mobula/objectstore/record"
	"mobula/objectstore/spill"
	"mobula/raylet/owner"
	"mobula/wire"
)

// storeShell is the shell of the object store, with its reads and writes under way.
type storeShell struct {
	*storePart
	core     *objectstore.Core
	io       *box
	epoch    uint64
	notes    objectstore.Notebook
	timer    *timer
	ready    bool         // spill storage is
	recovers []*operation // of spill storage, one after the other; while there are any it refuses what is new
	imports  int          // under way
	idle     func()       // is called when none is any more
	serving  map[serveKey]bool
	removals []spill.Location
}

// operation is work beside the actor. stop ends it undone, where that can be.
type operation struct {
	run, stop func() objectstore.Event
	reserve   bool
}

var errSuperseded = errs.New(errs.CodeCancelled, "the store was restarted meanwhile")

func (n *Node) startStore() {
	s := &storeShell{serving: make(map[serveKey]bool)}
	n.store = s
	s.io = n.box("io", func(op any) {
		if ev := op.(*operation).run(); ev != nil {
			s.box.put(ev)
		}
	})
	s.io.mixed = true
	s.storePart = &storePart{vital: objectstore.Vital, build: s.buildCore, do: s.carryOut, poisoned: s.poison, check: func() error { return s.core.Validate() }}
	startPart(n, kindStore, "objectstore", s.storePart)
	for _, old := range s.core.OldClients() {
		n.awaitOldClient(old)
	}
}

// awaitOldClient reports a client of before the node's restart as gone when its process is, or when it has not come back in time.
func (n *Node) awaitOldClient(old objectstore.ClientJoined) {
	life := n.life
	gone := func() {
		if n.life == life && n.sessions[old.Client] == nil {
			n.store.box.put(objectstore.ClientGone{Client: old.Client})
		}
	}
	for _, p := range n.w.processes {
		if p.n == n && p.pid == old.PID {
			p.watch(rejoinTimeout, gone)
		}
	}
}

// storeConfig makes a store of which little work fills the memory.
func (n *Node) storeConfig() objectstore.Config {
	cfg := objectstore.DefaultConfig(n.w.cfg.Store)
	cfg.ReserveStep, cfg.ColdFrom, cfg.WarmBytes, cfg.Patience = 16<<10, 24<<10, 16<<10, 60*time.Second
	cfg.MinSpillBytes, cfg.SpillGarbage = 8<<10, 0
	return cfg
}

func (s *storeShell) buildCore(restart int) (core[objectstore.Event, objectstore.Effect], []objectstore.Event) {
	n := s.n
	s.epoch = n.numbers.newEpoch()
	s.endReservations()
	entries := n.disk.index.entries()
	if restart == 0 {
		n.memory.reopen(entries)
	}
	was := objectstore.Replay{Entries: entries, Connected: restart > 0, Epoch: s.epoch, Files: n.memory.paths(), Draining: true}
	was.Notes = s.notes.List()
	if s.core != nil {
		was.Counters = s.core.Counters()
	}
	if s.timer != nil {
		s.timer.stop()
	}
	c, evs := objectstore.Rebuild(n.storeConfig(), was)
	s.core, s.ready = c, false
	n.memory.keep(entries, restart == 0)
	return c, append(evs, objectstore.IndexSize{Bytes: page}, objectstore.RecoverSpill{Live: c.Live()})
}

// poison answers an event that is dropped: a client that waits for something has to go.
func (s *storeShell) poison(ev objectstore.Event) {
	n := s.n
	bye := func(c ids.ClientID) {
		n.w.model.turnedAway(n.w, c)
		n.send(c, &wire.Bye{Err: errPoisoned})
	}
	switch ev := ev.(type) {
	case objectstore.FromClient:
		bye(ev.Client)
	case objectstore.ClientJoined:
		bye(ev.Client)
	case objectstore.PinForGet:
		bye(ev.Client)
	case objectstore.PinArgs:
		n.w.model.failsWith(ev.Task)
		s.toOwner(objectstore.ToOwner{Job: ev.Job, Msg: objectstore.ArgsRefused{Task: ev.Task, Attempt: ev.Attempt, Ask: ev.Ask, Err: errPoisoned}})
	}
}

// endReservations lets those go on that a core before this one has begun: this one gives back what they bring.
func (s *storeShell) endReservations() {
	for _, op := range s.io.takeIf(func(op any) bool { return op.(*operation).reserve }) {
		s.box.put(op.(*operation).run())
	}
}

// recover ends what earlier cores began, done or undone, and tells spill storage what is still named.
func (s *storeShell) recover(live []spill.Location) {
	epoch := s.epoch
	s.recovers = append(s.recovers, &operation{run: func() objectstore.Event {
		if s.imports > 0 {
			s.idle = func() { s.io.put(s.recovers[0]) }
			return nil
		}
		for _, op := range s.io.takeIf(func(op any) bool { return op.(*operation).stop != nil }) {
			o := op.(*operation)
			if s.n.w.rng.IntN(2) == 0 {
				o.run = o.stop
			}
			s.box.put(o.run())
		}
		sizes := s.n.spill.recover(live)
		if s.recovers = s.recovers[1:]; len(s.recovers) > 0 {
			s.io.put(s.recovers[0])
		}
		return objectstore.Drained{Epoch: epoch, Sizes: sizes}
	}})
	if len(s.recovers) == 1 {
		s.io.put(s.recovers[0])
	}
}

func (s *storeShell) carryOut(f objectstore.Effect) {
	n := s.n
	switch e := f.(type) {
	case objectstore.ToClient:
		n.send(e.Client, e.Msg)
	case objectstore.ToOwner:
		s.toOwner(e)
	case objectstore.WriteRecord:
		n.disk.index.write(e.Slot, e.Record)
	case objectstore.ClearRecord:
		delete(n.disk.index.slots, e.Slot)
	case objectstore.SpillWrite:
		s.beginWrite(e.Job, func() ([]spill.Location, error) { return n.spill.write(e.Items) })
	case objectstore.SpillCopy:
		held := make([]*spillFile, len(e.Objects))
		for i, o := range e.Objects {
			held[i] = n.spill.held(o.From)
		}
		s.beginWrite(e.Job, func() ([]spill.Location, error) { return n.spill.copy(e.Objects, held) })
	case objectstore.SpillRead:
		f := n.spill.held(e.Loc)
		s.beginRead(e.Job, func() error { return s.spillRead(e, f) })
	case objectstore.CopyObject:
		s.beginRead(e.Job, func() error {
			copy(n.memory.at(e.Place, e.Extent), n.memory.at(e.From, e.Of))
			return nil
		})
	case objectstore.Import:
		s.imports++
		n.transfer.fetch(e, func(err error) { s.imported(e, err) })
	case objectstore.Exported:
		s.serve(e)
	case objectstore.SpillRemove:
		if !s.ready {
			s.removals = append(s.removals, e.Locs...)
			return
		}
		s.remove(e.Locs)
	case objectstore.Reserve:
		s.io.put(&operation{reserve: true, run: func() objectstore.Event { return objectstore.ReserveDone{Job: e.Job, Err: s.reserve(e)} }})
	case objectstore.Punch:
		for _, r := range e.Ranges {
			n.memory.punch(ids.JobID(r.Owner), r.Range)
		}
	case objectstore.DropSegment:
		n.memory.drop(e.Place)
		n.memory.over[e.Place] = true
	case objectstore.AllowSegment:
		delete(n.memory.over, e.Place)
	case objectstore.CreateFallback:
		s.io.put(&operation{run: func() objectstore.Event { return s.fallback(e) }})
	case objectstore.DropFile:
		n.memory.remove(e.File)
	case objectstore.CopyIn:
		for _, p := range e.Parts {
			x := e.Extent
			x.Off, x.Size = x.Off+p.Off, uint64(len(p.Data))
			copy(n.memory.touch(e.Place, x), p.Data)
		}
	case objectstore.Remember:
		s.notes.Put(e)
	case objectstore.Forget:
		s.notes.Drop(e.Key)
	case objectstore.SetTimer:
		if s.timer != nil {
			s.timer.stop()
		}
		s.timer = s.after(time.Duration(e.At-n.w.now), objectstore.Tick{})
	case objectstore.Log:
	case objectstore.RecoverSpill:
		s.recover(e.Live)
	case objectstore.SpillReady:
		s.ready = true
		s.remove(s.removals)
		s.removals = nil
	default:
		n.w.fail("the store asks for a %T, which nobody does", f)
	}
}

func (s *storeShell) remove(locs []spill.Location) {
	for _, l := range locs {
		s.n.spill.remove(l)
	}
}

// beginWrite begins a write. Spill storage refuses it while it ends what was begun before.
func (s *storeShell) beginWrite(job uint64, write func() ([]spill.Location, error)) {
	stop := func() objectstore.Event { return objectstore.SpillDone{Job: job, Err: errSuperseded} }
	if len(s.recovers) > 0 {
		s.io.put(&operation{run: stop})
		return
	}
	s.io.put(&operation{stop: stop, run: func() objectstore.Event {
		locs, err := write()
		return objectstore.SpillDone{Job: job, Locs: locs, Err: err}
	}})
}

func (s *storeShell) beginRead(job uint64, read func() error) {
	stop := func() objectstore.Event { return objectstore.RestoreDone{Job: job, Err: errSuperseded} }
	if len(s.recovers) > 0 {
		s.io.put(&operation{run: stop})
		return
	}
	s.io.put(&operation{stop: stop, run: func() objectstore.Event { return objectstore.RestoreDone{Job: job, Err: read()} }})
}

func (s *storeShell) spillRead(e objectstore.SpillRead, f *spillFile) error {
	err := s.n.spill.read(e.Loc, f, s.n.memory.at(e.Place, e.Extent))
	if f != nil && f.rotten != nil {
		s.n.w.model.rotten(s.n.disk.index.named(e.Loc))
	}
	return err
}

func (s *storeShell) reserve(e objectstore.Reserve) error {
	m := s.n.memory
	if m.short {
		return errs.New(errs.CodeSegmentUnavailable, "the machine has no more memory")
	}
	for _, r := range e.Ranges {
		if e.Look {
			m.cold[r.Off] = true
		} else {
			m.reserve(e.Place, r)
		}
	}
	return nil
}

func (s *storeShell) fallback(e objectstore.CreateFallback) objectstore.Event {
	if s.n.spill.full {
		return objectstore.FallbackDone{Job: e.Job, Err: errs.New(errs.CodeOutOfDisk, "no room for a mapped file of %d bytes", e.Size)}
	}
	file, path := s.n.memory.newMapped(e.Size)
	return objectstore.FallbackDone{Job: e.Job, File: file, Path: path}
}

// toOwner tells a job's owner what the store has to say.
func (s *storeShell) toOwner(e objectstore.ToOwner) {
	n := s.n
	switch m := e.Msg.(type) {
	case objectstore.Lost:
		n.w.model.lost(n, m)
	case objectstore.CreateWaits:
		n.w.model.yields(n, m)
	}
	if n.owners[e.Job] != nil || n.links.hosts(e.Job) {
		n.toOwner(e.Job, owner.FromStore{Node: n.home, Msg: e.Msg})
	} else if inv, ok := e.Msg.(objectstore.Inventory); ok {
		n.jobs.inventory(inv)
	}
}

// imported tells the store that an import has ended. Spill storage of a core that was built anew waits for the last one.
func (s *storeShell) imported(e objectstore.Import, err error) {
	s.imports--
	s.box.put(objectstore.RestoreDone{Job: e.Job, Err: err})
	if goOn := s.idle; goOn != nil && s.imports == 0 {
		s.idle = nil
		goOn()
	}
}

// serve gives another node what it has asked for, once: a new core says again what an earlier one has said.
func (s *storeShell) serve(e objectstore.Exported) {
	k := serveKey{e.To, e.Token}
	if s.serving[k] {
		return
	}
	s.serving[k] = true
	s.n.transfer.serve(e, func() {
		delete(s.serving, k)
		s.box.put(objectstore.ExportDone{To: e.To, Token: e.Token})
	})
}

// named are the records of what has its copy at a place.
func (x *index) named(l spill.Location) (out []record.Record) {
	for _, slot := range slices.Sorted(maps.Keys(x.slots)) {
		if r := x.slots[slot]; r.Spilled && r.Loc == l {
			out = append(out, r)
		}
	}
	return out
}

// left says what the store has, for the end of a run; empty: nothing.
func (s *storeShell) left() string {
	st := s.core.Stats()
	if st.Objects == 0 && st.Grants == 0 && st.FallbackBytes == 0 && st.Held == 0 && st.Args == 0 && s.notes.Len() == 0 {
		return ""
	}
	return fmt.Sprintf("%+v, %d notes", st, s.notes.Len())
}

// has tells whether something of a job is left that its owner was to free.
func (s *storeShell) has(job ids.JobID) bool { return len(s.core.List(job, ids.ObjectID{}, 1)) > 0 }
