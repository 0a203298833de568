package objectstore

import (
	"cmp"
	"maps"
	"slices"

	"mobula/internal/ids"
	"mobula/objectstore/alloc"
	"mobula/objectstore/record"
	"mobula/objectstore/spill"
	"mobula/wire"
)

// Replay is what a core is rebuilt from.
type Replay struct {
	Entries []record.Entry
	// Connected says that the clients of the index are connected still: the core panicked,
	// the process lived on. Else each is waited for until it joins or is reported gone.
	Connected bool
	Epoch     uint64            // of Resync; grows with each rebuild
	Notes     []Note            // remembered by earlier cores, in order
	Files     map[uint32]string // fallback files that are open, and their paths
	Absent    map[uint32]bool   // slots of what lies in spill targets alone that the node does not have now
	Counters  Counters          // of the cores before
	Draining  bool              // spill storage is not ready yet, I/O of an earlier core may be under way: Drained follows
}

// Rebuild makes a core from the index. The events are to be stepped first. Memory of
// anything from before stays in place until each client of that time has declared its pins
// or is gone.
func Rebuild(cfg Config, r Replay) (*Core, []Event) {
	c := NewCore(cfg)
	c.epoch, c.counts = r.Epoch, r.Counters
	c.job, c.note = r.Epoch<<40, r.Epoch<<40 // answers to earlier cores' jobs fit none of this one's
	used := make(map[uint32]bool, len(r.Entries))
	for _, e := range r.Entries {
		if e.State == record.StateClient {
			c.old[e.Client] = &oldClient{slot: e.Slot, pid: e.PID}
			c.jobOf[e.Client] = e.Job
			if r.Connected {
				c.clients.byID[e.Client] = e.Slot
			}
			used[e.Slot] = true
		}
	}
	var drop []uint32
	blocks := make(map[ids.ObjectID]*object) // of packed values
	bare := bareObjects{byID: make(map[ids.ObjectID]*object)}
	if r.Connected {
		bare.located = make(map[ids.ObjectID]Located)
		for _, n := range r.Notes {
			if at, is := n.Event.(Located); is {
				bare.located[at.ID] = at
			}
		}
	}
	for _, copies := range []bool{false, true} {
		for _, e := range r.Entries {
			if e.State == record.StateClient || e.Copy != copies {
				continue
			}
			if copies && c.replayCopy(e, r, blocks, bare) || !copies && c.replay(e, r, blocks, bare) {
				used[e.Slot] = true
			} else {
				drop = append(drop, e.Slot)
			}
			c.nextSlot = max(c.nextSlot, e.Slot+1)
		}
	}
	for _, id := range slices.SortedFunc(maps.Keys(bare.byID), ids.ObjectID.Compare) {
		if o := bare.byID[id]; len(o.copies) == 0 && !o.draining {
			delete(used, o.slot)
			drop = append(drop, o.slot)
		}
	}
	for id := range c.old {
		c.nextSlot = max(c.nextSlot, c.old[id].slot+1)
	}
	for s := range c.nextSlot {
		if !used[s] {
			c.freeSlots = append(c.freeSlots, s)
		}
	}
	for _, o := range c.all() {
		o.quarantine = len(c.old) > 0 && o.resident
	}
	for _, o := range c.all() {
		if o.spilled {
			c.files.add(o, o.loc, false)
		}
	}
	for _, o := range c.all() {
		c.relist(o)
	}
	c.out = nil
	c.recovering = r.Draining
	c.inFlightFiles = maps.Clone(r.Files)
	for _, o := range c.all() {
		delete(c.inFlightFiles, o.file)
	}
	for _, g := range c.grants {
		delete(c.inFlightFiles, g.file)
	}
	evs := []Event{begin{drop, !r.Draining}}
	for _, n := range slices.SortedStableFunc(slices.Values(r.Notes), heldFirst) {
		evs = append(evs, recalled{n})
	}
	return c, evs
}

// replay takes one record over; false if nothing of it is of use.
func (rc *recovery) replay(e record.Entry, r Replay, blocks map[ids.ObjectID]*object, bare bareObjects) bool {
	switch e.State {
	case record.StateGranted:
		return rc.replayGrant(e, r)
	case record.StateSealed, record.StateRestoring:
	default:
		return false
	}
	o := &object{id: e.ID, attempt: e.Attempt, slot: e.Slot, size: e.Size, meta: e.Payload, job: cmp.Or(e.Job, e.ID.Job()), spilled: e.Spilled, loc: e.Loc, absent: r.Absent[e.Slot]}
	if e.State == record.StateRestoring {
		rc.replayRead(o, e)
	} else if e.Resident {
		o.resident = rc.claimExtent(e, r)
		o.block, o.file, o.path = e.Block, e.File, e.Path
	}
	if !o.resident {
		o.block, o.file, o.path = alloc.Block{}, 0, ""
		if !o.spilled {
			return bare.add(o, e.Packed) || o.draining
		}
	}
	if e.Packed {
		var idList []ids.ObjectID
		var ok bool
		if idList, o.values, o.meta, ok = readDirectory(e.Payload, e.Size); !ok {
			rc.skipRecord(o)
			return o.draining
		}
		o.live = len(o.values)
		for i, id := range idList {
			if _, dup := rc.objects.objs[id]; dup {
				o.values[i].gone = true
				o.live--
				continue
			}
			rc.objects.objs[id] = ref{o, uint32(i)}
		}
		o.gone = o.live == 0
		if _, dup := blocks[o.id]; dup {
			blocks[o.id] = nil // which of them a copy is of, nobody knows
		} else {
			blocks[o.id] = o
		}
		return true
	}
	was, dup := rc.objects.objs[e.ID]
	switch {
	case dup && was.o.values == nil:
		rc.skipRecord(o)
		return o.draining
	case dup: // a value that was freed, and made again as an object of its own
		was.o.values[was.sub].gone = true
		was.o.live--
		was.o.gone = was.o.live == 0
	}
	rc.objects.objs[e.ID] = ref{o: o}
	return true
}

// replayRead keeps the room that an earlier core's read may still fill.
func (rc *recovery) replayRead(o *object, e record.Entry) {
	if e.File == 0 && e.Block.Size > 0 && rc.space.alloc.Restore(e.Block) == nil {
		rc.copies.inFlightReads = append(rc.copies.inFlightReads, inFlightRead{o, e.Block})
		o.draining = true
	}
}

// claimExtent marks a record's bytes as used; false if they cannot be its.
func (rc *recovery) claimExtent(e record.Entry, r Replay) bool {
	if e.File != 0 {
		_, ok := r.Files[e.File]
		if ok {
			rc.space.fallbackBytes += e.Size
		}
		return ok
	}
	return e.Size <= e.Block.Size && rc.space.alloc.Restore(e.Block) == nil
}

func (rc *recovery) skipRecord(o *object) {
	if o.resident && o.file == 0 {
		rc.space.freeBlock(o.block)
	}
	o.resident, o.spilled = false, false
}

func (rc *recovery) replayGrant(e record.Entry, r Replay) bool {
	k := grantKey{e.ID, e.Attempt}
	if _, dup := rc.creates.grants[k]; dup || !rc.claimExtent(e, r) {
		return false
	}
	g := &grant{grantKey: k, client: e.Client, size: e.Size, job: e.Job, block: e.Block, file: e.File, path: e.Path, slot: e.Slot, left: rc.clients.old[e.Client] == nil}
	if g.cold = g.file == 0 && !g.block.Slab; g.cold { // it may have been
		rc.space.alloc.Unback(g.block)
	}
	rc.creates.grants[k] = g
	rc.creates.count(g)
	return true
}

// begin tells owners what there is and asks connected clients what they hold.
func (rc *recovery) begin(e begin) {
	for _, s := range e.drop {
		rc.emit(ClearRecord{s})
	}
	if e.inFlightReadsDone {
		rc.inFlightReadsDone()
	}
	byJob := make(map[ids.JobID][]SealedInfo)
	for _, id := range sortedObjects(rc.objects.objs) {
		r := rc.objects.objs[id]
		byJob[id.Job()] = append(byJob[id.Job()], r.info(id))
		if o := r.o; o.resident && o.size == 0 && o.file == 0 && !o.block.Slab {
			rc.space.punchUnwritten(o.block) // nothing was written to it: it may have been granted cold
		}
	}
	left := rc.creates.left(func(*grant) bool { return true })
	for _, job := range append(rc.copies.fileJobs(), sortedKeys(left)...) { // of the first, so that the files of jobs that are over go
		byJob[job] = append(byJob[job], []SealedInfo{}...)
	}
	for _, job := range sortedKeys(byJob) {
		rc.emit(ToOwner{job, Inventory{Job: job, Objects: byJob[job], Left: left[job]}})
	}
	for _, x := range rc.copies.sortedCopies() { // the last copies of objects that were being rescued
		if o := x.of; o != nil && !o.resident && !o.spilled && len(o.elsewhere) == 0 {
			rc.restores.rescue(o)
		}
	}
	for _, id := range rc.clients.sortedClients() {
		rc.clients.toClient(id, &wire.Resync{Component: wire.ComponentStore, Epoch: rc.epoch})
	}
}

// info is what an owner is told of an object.
func (r ref) info(id ids.ObjectID) SealedInfo {
	return SealedInfo{ID: id, Attempt: r.o.attempt, Size: r.size(), Meta: r.meta(), Elsewhere: !r.o.isHere()}
}

// listObjects tells a job's owner what there is of the job.
func (rc *recovery) listObjects(e ListObjects) {
	job := e.Job
	inv := Inventory{Job: job, Asked: true, Ask: e.Ask, Left: rc.creates.left(func(g *grant) bool { return g.id.Job() == job })[job]}
	for _, k := range rc.creates.grantKeys(func(g *grant) bool { return !g.left && !g.doomed && g.id.Job() == job }) {
		inv.Unsealed = append(inv.Unsealed, Left{k.id, k.attempt, rc.creates.grants[k].client})
	}
	for _, id := range sortedObjects(rc.objects.objs) {
		if r := rc.objects.objs[id]; id.Job() == job && !r.o.absent { // what is absent now may be there again in the node's next life
			inv.Objects = append(inv.Objects, r.info(id))
		}
	}
	rc.emit(ToOwner{job, inv})
	rc.creates.wantCPUAgain(job)
}

// inFlightReadsDone frees what an earlier core's reads might have written to.
func (rc *recovery) inFlightReadsDone() {
	for _, d := range rc.copies.inFlightReads {
		if !d.block.Slab { // it may be cold
			rc.space.punchUnwritten(d.block)
		}
		rc.space.freeBlock(d.block)
		if d.o.draining = false; d.o.spilled || len(d.o.copies) > 0 { // else only its record was kept, for the block
			rc.objects.record(d.o)
			rc.objects.relist(d.o)
		} else {
			rc.objects.clearSlot(d.o.slot)
		}
	}
	for _, f := range sortedKeys(rc.inFlightFiles) {
		rc.clients.dropFile(f, rc.inFlightFiles[f])
	}
	rc.copies.inFlightReads, rc.inFlightFiles, rc.recovering = nil, nil, false
}

// holdings takes a client's word on what it has pinned.
func (rc *recovery) holdings(client ids.ClientID, m *wire.Holdings) {
	if m.Component != wire.ComponentStore || m.Epoch != rc.epoch || rc.clients.old[client] == nil {
		return
	}
	for _, p := range m.Pins {
		r, ok := rc.objects.objs[p.ID]
		if ok {
			r, ok = rc.objects.readAt(client, r)
		}
		if p.N > 0 {
			rc.objects.declarePins(client, p.ID, r, ok && r.o.resident, p.N)
		}
	}
	rc.declared(client)
}

// declared ends the quarantine when no client of before the restart is left to be heard.
func (rc *recovery) declared(client ids.ClientID) {
	if rc.clients.old[client] == nil {
		return
	}
	delete(rc.clients.old, client)
	if len(rc.clients.old) > 0 {
		return
	}
	for _, o := range rc.objects.all() {
		if o.quarantine && !slices.Contains(rc.copies.orphanBlocks, o) {
			o.quarantine = false
			rc.objects.relist(o)
		}
	}
	rc.copies.freeOrphanBlocks()
}

// OldClients are the clients of before the restart that are still waited for, and their
// process ids: whoever watches processes reports those that are gone.
func (rc *recovery) OldClients() []ClientJoined {
	var out []ClientJoined
	for _, id := range sortedKeys(rc.clients.old) {
		out = append(out, ClientJoined{Client: id, PID: rc.clients.old[id].pid})
	}
	return out
}

// Live lists every spilled copy that the store knows of: what spill storage may not delete.
func (rc *recovery) Live() []spill.Location {
	var out []spill.Location
	seen := make(map[*object]bool)
	add := func(o *object) {
		if o.spilled && !seen[o] {
			seen[o] = true
			out = append(out, o.loc)
		}
	}
	for _, id := range sortedObjects(rc.objects.objs) { // the same events give the same effects
		add(rc.objects.objs[id].o)
	}
	return out
}

func sortedObjects(m map[ids.ObjectID]ref) []ids.ObjectID {
	out := make([]ids.ObjectID, 0, len(m))
	for id := range m {
		out = append(out, id)
	}
	slices.SortFunc(out, ids.ObjectID.Compare)
	return out
}

// bareObjects are those without bytes of their own, of a core that panicked: they are on other nodes, as a note says, or were on one that is gone, and what another job's
// processes read here is the last copy. One of which no such copy is found is dropped: a note brings it back.
type bareObjects struct {
	byID    map[ids.ObjectID]*object
	located map[ids.ObjectID]Located // nil: the process has died, and with it whoever knew where objects are
}

func (b bareObjects) add(o *object, packed bool) bool {
	if b.located == nil || packed || b.byID[o.id] != nil || o.job != o.id.Job() {
		return false
	}
	b.byID[o.id] = o
	return true
}

// of finds what a copy is of. nil: there is none, or what is on other nodes is another attempt's.
func (b bareObjects) of(id ids.ObjectID) *object {
	o := b.byID[id]
	if o == nil {
		return nil
	}
	if at, is := b.located[id]; is {
		if at.Attempt != o.attempt {
			return nil
		}
		o.elsewhere = slices.Clone(at.On)
	}
	return o
}

// replayCopy takes a copy over. One whose object is not there any more is an orphan: it keeps its place until all clients have said what they hold, and then
// for those who have it pinned.
func (rc *recovery) replayCopy(e record.Entry, r Replay, blocks map[ids.ObjectID]*object, bare bareObjects) bool {
	x := &object{id: e.ID, attempt: e.Attempt, slot: e.Slot, size: e.Size, job: e.Job}
	if e.State == record.StateRestoring {
		rc.replayRead(x, e)
		return x.draining
	}
	if e.State != record.StateSealed || !e.Resident || !rc.claimExtent(e, r) {
		return false
	}
	x.resident, x.block, x.file, x.path = true, e.Block, e.File, e.Path
	of := rc.objects.objs[e.ID].o
	switch {
	case e.Packed:
		of = blocks[e.ID]
	case of == nil:
		of = bare.of(e.ID)
	}
	switch {
	case of != nil && (of.values != nil) == e.Packed && of.attempt == e.Attempt && of.size == e.Size && of.job != e.Job && of.copies[e.Job] == nil:
		x.of, x.meta, x.values = of, of.meta, of.values
		if of.copies == nil {
			of.copies = make(map[ids.JobID]*object)
		}
		of.copies[e.Job] = x
		if bare.byID[e.ID] == of {
			rc.objects.objs[e.ID] = ref{o: of}
		}
	case len(rc.clients.old) == 0:
		if e.File != 0 {
			rc.space.fallbackBytes -= e.Size // it is dropped with the files of no record
		}
		rc.skipRecord(x)
		return false
	default:
		x.gone, x.quarantine = true, true
		if e.Packed { // by which ids its values are pinned, nobody knows
			rc.copies.orphanBlocks = append(rc.copies.orphanBlocks, x)
		}
		rc.objects.orphan(e.ID, ref{o: x})
	}
	rc.objects.allCopies[x] = struct{}{}
	return true
}
