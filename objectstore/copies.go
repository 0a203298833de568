package objectstore

import (
	"errors"
	"slices"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/objectstore/alloc"
	"mobula/objectstore/spill"
	"mobula/wire"
)

// A client reads what its own job's processes made where it lies. What those of another job made it gets as a copy, in a sealed file of its
// own that nobody can write: decision 0014.

// copied is a copy of an object, or of a block of values, for readers of other jobs.
type copied struct {
	o       *object
	d       *demand // while it is being made
	file    uint32  // once it is
	size    uint64
	blocks  []alloc.Block // what it takes of the limit; nothing lies there
	pins    map[copyPin]uint32
	sets    int                       // argument sets that want it or have it
	active  int                       // of those, the ones whose task is not idle
	note    NoteKey                   // of heldCopy
	told    map[ids.ClientID]struct{} // who may have it mapped
	both    map[copyPin]struct{}      // pins that may be on the object itself: declared after a restart, and counted there too
	leaving bool                      // nobody wants it; it goes when everyone told has unmapped it
}

// copyPin is one client's pins by gets of one object.
type copyPin struct {
	client ids.ClientID
	id     ids.ObjectID
}

// copyOwner owns the blocks of copies.
const copyOwner = ^alloc.Owner(0)

// maxAsides bounds how often a copy that found no room waits for Stall once more.
const maxAsides = 60

// aside is a copy that waits without holding up others.
type aside struct {
	d  *demand
	at int64
}

// foreign tells whether a client may read an object in a copy only.
func (c *Core) foreign(client ids.ClientID, o *object) bool { return c.jobOf[client] != o.lies() }

// lies is the job in whose file the object lies, or would.
func (o *object) lies() ids.JobID {
	if o.resident && o.file == 0 {
		return ids.JobID(o.block.Owner)
	}
	return o.job
}

// copyOf is the copy of an object, which is asked for if there is none.
func (c *Core) copyOf(o *object, l lane) *copied {
	x := c.copies[o]
	if x == nil {
		x = &copied{o: o, size: max(o.size, 1), pins: make(map[copyPin]uint32), told: make(map[ids.ClientID]struct{})}
		x.d = &demand{lane: l, need: x.size, x: x}
		c.copies[o] = x
		o.kept++
		c.enqueue(x.d)
	} else if d := x.d; d != nil && l == laneGet && d.lane == laneArgs {
		d.lane = laneGet
		if d.stage == stageWaiting && !d.aside {
			c.queues[laneGet].push(d)
		}
	}
	return x
}

// getCopy is pinForGet of an object of another job.
func (c *Core) getCopy(e PinForGet, r ref) {
	x := c.copyOf(r.o, laneGet)
	if x.d == nil {
		c.answerCopy(e.Client, e.ID, r, x, e.Refs)
		return
	}
	c.note++
	c.emit(Remember{NoteKey{N: c.note}, e})
	x.d.gets = append(x.d.gets, getter{e.Client, e.ID, r.sub, c.note, e.Refs})
}

func (c *Core) answerCopy(client ids.ClientID, id ids.ObjectID, r ref, x *copied, refs []ids.ObjectID) {
	k := copyPin{client, id}
	if x.pins[k] == 0 {
		c.copyPins[k] = append(c.copyPins[k], x)
	}
	x.pins[k]++
	c.tell(client, x)
	res := &wire.Resolved{ID: id, Fetch: true, Extent: x.extent(r)}
	res.Result = wire.Result{Kind: wire.ResultStored, Size: r.size(), Value: wire.Value{Meta: r.meta(), Refs: refs}}
	c.toClient(client, res)
}

// tell sends a copy's descriptor, before each use.
func (c *Core) tell(client ids.ClientID, x *copied) {
	if _, ok := c.clients[client]; ok {
		x.told[client] = struct{}{}
		c.emit(ToClient{Client: client, Msg: &wire.MapFile{File: x.file, Size: x.size, ReadOnly: true}, File: x.file})
	}
}

// extent is where the bytes of r, an object or a value of a block, lie in its copy.
func (x *copied) extent(r ref) wire.Extent {
	e := wire.Extent{File: x.file, Size: r.o.size}
	if r.o.values != nil {
		v := r.o.values[r.sub]
		e.Off, e.Size = uint64(v.off), uint64(v.size)
	}
	return e
}

// placeCopy gives a copy its part of the limit.
func (c *Core) placeCopy(d *demand) bool {
	if c.now < c.coldAt {
		return false
	}
	bs, ok := c.alloc.AllocPieces(copyOwner, d.need)
	if !ok || c.held(d, bs...) {
		return false
	}
	c.punchTaken()
	for _, b := range bs {
		c.alloc.Back(alloc.Owned{Owner: copyOwner, Range: b.Range()})
	}
	c.dequeue(d)
	d.blocks, d.since = bs, 0
	c.stall.stuck = false
	c.makeCopy(d)
	return true
}

// makeCopy has a copy that has its room filled.
func (c *Core) makeCopy(d *demand) {
	o := d.x.o
	if o.dead || !o.resident && !o.spilled {
		c.freeCopyBlocks(d.blocks)
		d.stage = stageWaiting
		c.failCopy(d, lostError(o.id, "was freed while a copy of it waited for room"))
		return
	}
	d.stage = stageReading
	o.copying++
	c.settle(o)
	e := MakeCopy{Job: c.newJob(d), Size: d.x.size, Of: wire.Extent{Size: o.size}}
	if o.resident {
		e.Place = o.lies()
		e.Of = ref{o: o}.whole()
	} else {
		e.Loc = &o.loc
		d.reads = true
		c.restores++
	}
	c.emit(e)
}

func (c *Core) copyDone(e CopyDone) {
	d, ok := takeJob[*demand](c, e.Job)
	if !ok {
		if e.Err == nil {
			c.emit(DropFile{File: e.File}) // of an earlier core
		}
		return
	}
	x := d.x
	if d.reads {
		d.reads = false
		c.restores--
	}
	x.o.copying--
	defer c.settle(x.o)
	if e.Err != nil || d.cancelled {
		if e.Err == nil {
			c.emit(DropFile{File: e.File})
		}
		c.freeCopyBlocks(d.blocks)
		if d.cancelled {
			return
		}
		c.copyFailed(d, e.Err)
		return
	}
	d.stage, x.d, x.file, x.blocks = stageDone, nil, e.File, d.blocks
	c.copyFiles[x.file] = x
	c.note++
	x.note = NoteKey{N: c.note}
	c.emit(Remember{x.note, x.held()})
	c.counts.Copies++
	c.counts.CopiedBytes += x.o.size
	for _, g := range d.gets {
		c.emit(Forget{NoteKey{N: g.note}})
		c.answerCopy(g.client, g.id, ref{x.o, g.sub}, x, g.refs)
	}
	for _, s := range d.sets {
		if s.missing--; s.missing == 0 && !s.answered {
			c.answerSet(s)
		}
	}
	c.letCopyGo(x)
}

// copyFailed tries again what may work later.
func (c *Core) copyFailed(d *demand, cause error) {
	o := d.x.o
	lasting := errors.Is(cause, spill.ErrCorrupt) || errors.Is(cause, spill.ErrMissing)
	if d.tries++; !lasting && d.tries < maxTries {
		c.log("a copy of an object for another job could not be made, trying again", cause)
		c.setAside(d, c.after(c.cfg.RetrySpill<<(d.tries-1)))
		return
	}
	d.stage = stageWaiting
	if errors.Is(cause, errs.ErrSegmentUnavailable) {
		c.failCopy(d, errs.New(errs.CodeSegmentUnavailable, "%v: %s", cause, c.figures(d.need)))
		return
	}
	err := errs.New(errs.CodeObjectLost, "object %v: its spilled copy cannot be read: %v", o.id, cause)
	err.Cause = []*errs.Error{errs.From(cause)}
	c.log("a spilled object is lost", err)
	c.counts.Lost++
	c.failCopy(d, err)
	if !o.resident && o.restore == nil {
		c.forget(o)
	}
}

// failCopy ends a copy for everyone who waits for it.
func (c *Core) failCopy(d *demand, err *errs.Error) {
	x := d.x
	d.cancelled = d.stage == stageReading
	d.stage, d.aside = stageDone, false
	if c.copies[x.o] == x {
		delete(c.copies, x.o)
	}
	x.leaving = true
	defer c.keptNoMore(x)
	gets, sets := d.gets, d.sets
	d.gets, d.sets = nil, nil
	for _, g := range gets {
		c.emit(Forget{NoteKey{N: g.note}})
		if errors.Is(err, errs.ErrObjectLost) {
			c.emit(ToOwner{g.id.Job(), Lost{ID: g.id, Client: g.client, Err: err}})
		} else {
			c.toClient(g.client, &wire.Resolved{ID: g.id, Fetch: true, Result: wire.Result{Kind: wire.ResultError, Err: err}})
		}
	}
	for _, s := range sets {
		if !errors.Is(err, errs.ErrObjectLost) {
			c.noRoom(s, err)
			continue
		}
		for i, r := range s.objs {
			if r.o == x.o {
				c.failSet(s, s.req.IDs[i], err)
				break
			}
		}
	}
}

// letCopyGo ends a copy that nobody wants any more, or begins to.
func (c *Core) letCopyGo(x *copied) {
	if d := x.d; d != nil {
		if len(d.gets) > 0 || len(d.sets) > 0 || x.sets > 0 || x.leaving {
			return
		}
		c.failCopy(d, errs.New(errs.CodeCancelled, "nobody waits for it any more"))
		return
	}
	if x.leaving || len(x.pins) > 0 || x.sets > 0 || len(c.old) > 0 {
		return
	}
	x.leaving = true
	if c.copies[x.o] == x {
		delete(c.copies, x.o)
	}
	c.leaving++
	c.keptNoMore(x)
	c.emit(Remember{x.note, x.held()})
	c.tellToDrop(x)
}

func (c *Core) tellToDrop(x *copied) {
	for _, id := range sortedKeys(x.told) {
		c.toClient(id, &wire.MapFile{File: x.file, Size: x.size, ReadOnly: true, Drop: true})
	}
	c.copyGone(x)
}

func (x *copied) held() heldCopy {
	return heldCopy{File: x.file, ID: x.o.id, Attempt: x.o.attempt, Size: x.size, Blocks: x.blocks, Leaving: x.leaving}
}

// keptNoMore lets the object go that a copy was of, if nothing else keeps it.
func (c *Core) keptNoMore(x *copied) {
	x.o.kept--
	c.settle(x.o)
}

// unmapped takes a client's word that it no longer maps a file.
func (c *Core) unmapped(client ids.ClientID, file uint32) {
	if x := c.copyFiles[file]; x != nil && x.leaving {
		delete(x.told, client)
		c.copyGone(x)
	}
}

// copyGone gives back what a copy took once nobody has it mapped.
func (c *Core) copyGone(x *copied) {
	if x.leaving && len(x.told) == 0 && c.copyFiles[x.file] == x {
		delete(c.copyFiles, x.file)
		c.leaving--
		c.emit(Forget{x.note})
		c.emit(DropFile{File: x.file})
		c.freeCopyBlocks(x.blocks)
	}
}

func (c *Core) freeCopyBlocks(bs []alloc.Block) {
	for _, b := range bs {
		c.alloc.Unback(b)
		c.freeBlock(b)
	}
}

// unpinCopy drops a client's pins on copies, and says how many it had of the n.
func (c *Core) unpinCopy(client ids.ClientID, id ids.ObjectID, n uint32) uint32 {
	var dropped uint32
	k := copyPin{client, id}
	for _, x := range slices.Clone(c.copyPins[k]) {
		m := min(n-dropped, x.pins[k])
		if _, both := x.both[k]; !both {
			dropped += m
		}
		if x.pins[k] -= m; x.pins[k] == 0 {
			c.dropCopyPin(x, k)
		}
	}
	return dropped
}

func (c *Core) dropCopyPin(x *copied, k copyPin) {
	delete(x.pins, k)
	delete(x.both, k)
	if l := slices.DeleteFunc(c.copyPins[k], func(y *copied) bool { return y == x }); len(l) == 0 {
		delete(c.copyPins, k)
	} else {
		c.copyPins[k] = l
	}
	c.letCopyGo(x)
}

// ungetCopy withdraws a get that waits for a copy.
func (c *Core) ungetCopy(client ids.ClientID, id ids.ObjectID, o *object) {
	x := c.copies[o]
	if x == nil || x.d == nil {
		return
	}
	for i, g := range x.d.gets {
		if g.client == client && g.id == id {
			c.emit(Forget{NoteKey{N: g.note}})
			x.d.gets = slices.Delete(x.d.gets, i, i+1)
			break
		}
	}
	c.letCopyGo(x)
}

// copyClientGone drops what a dead client had of copies.
func (c *Core) copyClientGone(client ids.ClientID) {
	for _, x := range c.allCopies() {
		if d := x.d; d != nil {
			d.gets = slices.DeleteFunc(d.gets, func(g getter) bool {
				if g.client == client {
					c.emit(Forget{NoteKey{N: g.note}})
				}
				return g.client == client
			})
		}
		delete(x.told, client)
		for k := range x.pins {
			if k.client == client {
				c.dropCopyPin(x, k)
			}
		}
		c.letCopyGo(x)
		c.copyGone(x)
	}
}

// allCopies lists every copy, those that are leaving too, in a fixed order.
func (c *Core) allCopies() []*copied {
	var out []*copied
	for _, x := range c.copies {
		if x.d != nil {
			out = append(out, x)
		}
	}
	slices.SortFunc(out, func(a, b *copied) int { return int(int64(a.d.ticket) - int64(b.d.ticket)) })
	for _, f := range sortedKeys(c.copyFiles) {
		out = append(out, c.copyFiles[f])
	}
	return out
}

// heldCopy is a copy that an earlier core had made: clients have it mapped, all or some.
type heldCopy struct {
	File    uint32
	ID      ids.ObjectID
	Attempt uint32
	Size    uint64
	Blocks  []alloc.Block
	Leaving bool // clients were told to drop it
}

func (heldCopy) storeEvent() {}

// holdCopy takes an earlier core's copy over, until every client has said what it holds.
func (c *Core) holdCopy(e heldCopy, key NoteKey) {
	for i, b := range e.Blocks {
		if c.alloc.Restore(b) != nil {
			c.freeCopyBlocks(e.Blocks[:i])
			return // the file is dropped with others that nobody names
		}
	}
	c.punchTaken()
	delete(c.drainFiles, e.File)
	c.emit(Remember{key, e})
	o := c.objs[e.ID].o
	if o == nil || o.values == nil && o.attempt != e.Attempt {
		o = &object{id: e.ID, dead: true} // another attempt's, dropped
	}
	x := &copied{o: o, file: e.File, size: e.Size, blocks: e.Blocks, note: key, pins: make(map[copyPin]uint32), told: make(map[ids.ClientID]struct{})}
	c.copyFiles[x.file] = x
	for id := range c.clients {
		x.told[id] = struct{}{} // perhaps
	}
	if e.Leaving {
		x.leaving = true
		c.leaving++
		c.tellToDrop(x)
		return
	}
	if !o.dead && c.copies[o] == nil {
		c.copies[o] = x
	}
	o.kept++
	c.settle(o)
	c.letCopyGo(x)
}

// declareCopy takes a client's word that it has pinned an object; true if that can only be on a copy of it.
func (c *Core) declareCopy(k copyPin, n uint32) bool {
	r := c.objs[k.id]
	for _, f := range sortedKeys(c.copyFiles) {
		x := c.copyFiles[f]
		if x.leaving || x.o != r.o && x.o.id != k.id {
			continue
		}
		if x.pins[k] == 0 {
			c.copyPins[k] = append(c.copyPins[k], x)
		}
		x.pins[k] += n
		if r.o == nil || c.foreign(k.client, r.o) {
			return true
		}
		if x.both == nil { // the object has moved since, or the client reads it where it lies
			x.both = make(map[copyPin]struct{})
		}
		x.both[k] = struct{}{}
	}
	return false
}

// escapeCopy decides about a copy for which there is no room: it waits aside, and others go on. It tells whether it is off the queue.
func (c *Core) escapeCopy(d *demand) bool {
	if c.fallbacks > 0 || c.reserving > 0 || c.recovering {
		return false // their ends step the core again
	}
	c.dequeue(d)
	if d.asides++; d.asides <= maxAsides && !c.hopeless(d) {
		c.setAside(d, c.after(c.cfg.Stall))
		return true
	}
	err := errs.New(errs.CodeStoreFull, "no room for a copy of an object of another job: %s: close views or raise the store's limit", c.figures(d.need))
	switch {
	case c.now < c.coldAt:
		err = c.unavailable(d)
	case c.disk.err != nil && c.cold.n > 0:
		err = errs.New(errs.CodeOutOfDisk, "%v: %s: free space in the spill directories or add one", c.disk.err, c.figures(d.need))
	}
	c.giveUp(d, err)
	return true
}

func (c *Core) setAside(d *demand, at int64) {
	d.stage, d.since, d.aside, d.blocks = stageWaiting, 0, true, nil
	c.asides = append(c.asides, aside{d, at})
	c.wakeAt(at)
}

// pumpAsides queues those copies again whose time has come.
func (c *Core) pumpAsides() {
	if len(c.asides) == 0 {
		return
	}
	all := c.asides
	c.asides = nil
	for _, a := range all {
		switch {
		case !a.d.aside: // withdrawn
		case c.now < a.at:
			c.asides = append(c.asides, a)
			c.wakeAt(a.at)
		default:
			a.d.aside = false
			c.enqueue(a.d)
		}
	}
}

// wantCopy asks for a copy of one argument of a set.
func (c *Core) wantCopy(s *argSet, i int) {
	if s.copies == nil {
		s.copies = make([]*copied, len(s.objs))
	}
	x := c.copyOf(s.objs[i].o, laneArgs)
	s.copies[i] = x
	x.sets++
	if x.d != nil {
		s.missing++
		x.d.sets = append(x.d.sets, s)
	}
}

func (c *Core) unwantCopy(s *argSet, x *copied) {
	if d := x.d; d != nil {
		d.sets = slices.DeleteFunc(d.sets, func(y *argSet) bool { return y == s })
	}
	x.sets--
	c.letCopyGo(x)
}

// copyAt is the copy of an argument, nil if it is read where it lies.
func (s *argSet) copyAt(i int) *copied {
	if s.copies == nil {
		return nil
	}
	return s.copies[i]
}

// activateCopy is activate for an argument that is read in a copy.
func (c *Core) activateCopy(x *copied, on bool) {
	n := alloc.Rounded(x.size)
	if on {
		if x.active++; x.active == 1 {
			c.argBytes += n
		}
	} else if x.active--; x.active == 0 {
		c.argBytes -= n
	}
}
