package objectstore

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math/rand"
	"slices"
	"testing"
	"time"

	"mobula/internal/ids"
	"mobula/objectstore/alloc"
	"mobula/objectstore/record"
	"mobula/objectstore/spill"
	"mobula/objectstore/spill/format"
	"mobula/wire"
)

// world carries out a core's effects in memory, in whatever order the test likes, and
// watches the promises: nobody is given bytes that another holds, and whoever reads an object
// finds what was sealed.
type world struct {
	t     testing.TB
	c     *Core
	cfg   Config
	now   int64
	timer int64

	mem     map[place]uint64           // what was written at the start of each extent
	disk    map[spill.Location]bytesOf // spilled copies
	size    map[spill.FileKey]uint64   // of the files that they are in
	sealed  map[ids.ObjectID]uint64    // what each object must hold
	owned   map[owner]wire.Extent      // extents that clients may touch now
	records map[uint32]record.Record
	payload map[uint32][]byte
	notes   Notebook
	files   map[uint32]string
	jobs    []job            // answers that are due
	failing bool             // spill writes and fallback files
	noSpill bool             // spill writes only
	noMem   bool             // reservations
	machine uint64           // bytes of memory that there are for reservations; 0: enough
	most    uint64           // bytes in spill files, beyond which only copies may go; 0: no bound
	broken  error            // of reads
	rotten  map[uint64]error // files that cannot be read
	stale   bool             // what runs was begun by an earlier core: its object may be gone, and the block's memory with it
	shaky   bool             // reads of a file fail up to the last try, for no lasting reason
	failed  map[readOf]int
	backed  map[uint64]alloc.Owner // a page of the limit: in whose file it has memory
	punched uint64                 // bytes, in all
	job     map[ids.ClientID]ids.JobID
	noFile  map[ids.JobID]bool // theirs was dropped
	cold    []wire.Extent      // granted without memory at some time
	nextLoc uint64
	nextF   uint32
	tag     uint64
	epoch   uint64

	created  map[uint64]*wire.Created
	resolved []*wire.Resolved
	getter   []ids.ClientID // of each resolved
	argsOK   map[NoteKey]ArgsPinned
	lost     []Lost
	gone     []ids.ObjectID // lost, and nobody had asked
	evicted  []ids.ObjectID
	imported int
	refused  []ArgsRefused
	packed   map[ids.ObjectID]bool
	invent   []Inventory
	collects int
	yields   []ids.TaskID
	asked    []ids.JobID   // owners that are to let go
	ready    []CreateReady // said by the store
	busyCPUs bool          // no task gets a CPU again
	resyncs  []ids.ClientID
	logs     []string
	mapped   map[uint64]bool // client<<32|file: announced
	nodes    network
	retold   bool         // an event is told again: what comes of it may have been done
	show     func(Effect) // each effect, before it is carried out
	copied   func(SpillDone)
}

// job is work under way; stop ends it without doing it, if an earlier core's work can be.
type job struct {
	run, stop func()
	reserve   bool // ended before a new core is built
}

// readOf is the reads of a place for one job: an object and its copies are read one by one.
type readOf struct {
	loc spill.Location
	job ids.JobID
}

// bytesOf is what an object holds: a tag at its start, of packed values one at the start of each.
type bytesOf map[uint64]uint64

type place struct {
	job  ids.JobID // of file 0
	file uint32
	off  uint64
}

// owner is why an extent may not be touched by others: a grant, or a pin.
type owner struct {
	id      ids.ObjectID
	attempt uint32
	client  ids.ClientID
	pin     bool
}

func newWorld(t testing.TB, cfg Config) *world {
	if err := cfg.Validate(); err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, cfg: cfg, c: NewCore(cfg), now: 1e9,
		mem: map[place]uint64{}, disk: map[spill.Location]bytesOf{}, size: map[spill.FileKey]uint64{}, sealed: map[ids.ObjectID]uint64{}, owned: map[owner]wire.Extent{},
		records: map[uint32]record.Record{}, payload: map[uint32][]byte{}, files: map[uint32]string{}, backed: map[uint64]alloc.Owner{}, job: map[ids.ClientID]ids.JobID{}, noFile: map[ids.JobID]bool{},
		created: map[uint64]*wire.Created{}, argsOK: map[NoteKey]ArgsPinned{}, packed: map[ids.ObjectID]bool{}, mapped: map[uint64]bool{}, rotten: map[uint64]error{}}
	w.copied = func(e SpillDone) { w.step(e) }
	return w
}

// testConfig is small enough that little work fills it.
func testConfig(limit uint64) Config {
	cfg := DefaultConfig(limit)
	cfg.ReserveStep = 1 << 20
	cfg.Patience = 2 * time.Second
	cfg.WarmBytes = 64 << 10
	return cfg
}

func (w *world) step(ev Event) {
	w.t.Helper()
	effects := slices.Clone(w.c.Step(w.now, ev))
	if err := w.c.Validate(); err != nil {
		w.t.Fatalf("after %T: %v", ev, err)
	}
	for _, f := range effects {
		if w.show != nil {
			w.show(f)
		}
		w.do(f)
		w.within(f)
	}
}

// within checks the limit: pages with memory in any file.
func (w *world) within(f Effect) {
	w.t.Helper()
	if sum := uint64(len(w.backed)) * 4096; sum > w.cfg.Limit {
		w.t.Fatalf("after %T: %d bytes have memory, of a limit of %d", f, sum, w.cfg.Limit)
	}
}

// lies is where a client finds an extent.
func (w *world) lies(c ids.ClientID, e wire.Extent) place {
	if e.File != 0 {
		return place{0, e.File, e.Off}
	}
	return place{w.job[c], 0, e.Off}
}

// at is where the store finds one.
func at(job ids.JobID, e wire.Extent) place {
	if e.File != 0 {
		job = 0
	}
	return place{job, e.File, e.Off}
}

func (w *world) do(f Effect) {
	w.t.Helper()
	switch e := f.(type) {
	case ToClient:
		w.toClient(e)
	case ToOwner:
		w.toOwner(e)
	case SpillWrite:
		w.jobs = append(w.jobs, job{run: func() { w.spillWrite(e) }, stop: func() { w.step(SpillDone{Job: e.Job, Err: errCancelled}) }})
	case SpillCopy:
		held := make([]bytesOf, len(e.Objects))
		for i, o := range e.Objects {
			if held[i] = w.disk[o.From]; held[i] == nil {
				w.t.Fatalf("%v is to be copied from %+v, which is not there", o.ID, o.From)
			}
		}
		w.jobs = append(w.jobs, job{run: func() { w.spillCopy(e, held) }, stop: func() { w.step(SpillDone{Job: e.Job, Err: errCancelled}) }})
	case SpillRead:
		held := w.disk[e.Loc] // the file stays until it is read
		w.jobs = append(w.jobs, job{run: func() { w.spillRead(e, held) }, stop: func() { w.step(RestoreDone{e.Job, errCancelled}) }})
	case SpillRemove:
		for _, l := range e.Locs {
			if _, ok := w.disk[l]; !ok && w.broken == nil && !w.retold {
				w.t.Fatalf("location %v removed twice", l)
			}
			w.unspill(l)
		}
	case Reserve:
		w.jobs = append(w.jobs, job{reserve: true, run: func() {
			if e.Look && !w.noMem {
				w.cold = append(w.cold, wire.Extent{Off: e.Ranges[0].Off, Size: e.Ranges[0].Size})
				w.step(ReserveDone{e.Job, nil})
				return
			}
			if w.noFile[e.Place] {
				w.step(ReserveDone{e.Job, errors.New("the job is over")})
				return
			}
			if w.noMem {
				w.step(ReserveDone{e.Job, errors.New("no memory")})
				return
			}
			if w.short(e) {
				w.step(ReserveDone{e.Job, errors.New("the machine has no more memory")})
				return
			}
			for _, r := range e.Ranges {
				w.back(e.Place, r.Off, r.Size)
			}
			w.jobs = append(w.jobs, job{reserve: true, run: func() { w.step(ReserveDone{e.Job, nil}) }}) // much may happen before it is told
		}})
	case Punch:
		for _, r := range e.Ranges {
			w.punched += r.Size
			w.free(wire.Extent{Off: r.Off, Size: r.Size}, "punched out")
			for p := r.Off / 4096; p < (r.Off+r.Size)/4096; p++ {
				if o, ok := w.backed[p]; ok && o != r.Owner {
					w.t.Fatalf("page %d punched in the file of %d, its memory is in that of %d", p, r.Owner, o)
				}
				delete(w.backed, p)
			}
		}
	case CopyObject:
		w.jobs = append(w.jobs, job{run: func() { w.copyObject(e) }, stop: func() { w.step(RestoreDone{e.Job, errCancelled}) }})
	case Import:
		w.jobs = append(w.jobs, job{run: func() { w.fetch(e) }, stop: func() { w.step(RestoreDone{e.Job, errCancelled}) }})
	case Exported:
		w.serve(e)
	case AllowSegment:
		delete(w.noFile, e.Place)
	case DropSegment:
		w.noFile[e.Place] = true
		for p, o := range w.backed {
			if ids.JobID(o) == e.Place {
				delete(w.backed, p)
			}
		}
		for k, x := range w.owned {
			if x.File == 0 && w.job[k.client] == e.Place {
				w.t.Fatalf("the file of job %v goes, %+v is used by %+v", e.Place, x, k)
			}
		}
	case CreateFallback:
		w.jobs = append(w.jobs, job{run: func() {
			if w.failing {
				w.step(FallbackDone{Job: e.Job, Err: errors.New("disk full")})
				return
			}
			w.nextF++
			w.files[w.nextF] = fmt.Sprint("file", w.nextF)
			w.step(FallbackDone{Job: e.Job, File: w.nextF, Path: fmt.Sprint("file", w.nextF)})
		}})
	case DropFile:
		if w.files[e.File] == "" {
			w.t.Fatalf("file %d dropped twice", e.File)
		}
		w.free(wire.Extent{File: e.File, Size: 1 << 60}, "dropped")
		delete(w.files, e.File)
	case CopyIn:
		w.touch(e.Place, e.Extent)
		for _, p := range e.Parts {
			w.mem[place{e.Place, e.Extent.File, e.Extent.Off + p.Off}] = tagOf(p.Data)
		}
	case WriteRecord:
		if e.Record.Payload != nil {
			w.payload[e.Slot] = e.Record.Payload
		}
		w.records[e.Slot] = e.Record
	case ClearRecord:
		delete(w.records, e.Slot)
		delete(w.payload, e.Slot)
	case Remember:
		w.notes.Put(e)
	case Forget:
		w.notes.Drop(e.Key)
	case SpillReady:
	case SetTimer:
		w.timer = e.At
	case Log:
		w.logs = append(w.logs, e.Msg)
	default:
		w.t.Fatalf("unknown effect %T", f)
	}
}

func tagOf(b []byte) uint64 {
	var t uint64
	for i, x := range b[:min(8, len(b))] {
		t |= uint64(x) << (8 * i)
	}
	return t
}

// touch checks that an extent has memory, as whoever writes it relies on.
func (w *world) touch(job ids.JobID, e wire.Extent) {
	w.t.Helper()
	if e.File != 0 {
		if w.files[e.File] == "" {
			w.t.Fatalf("extent in file %d, which is not there", e.File)
		}
		return
	}
	for p := e.Off / 4096; p*4096 < e.Off+e.Size; p++ {
		if o, ok := w.backed[p]; !ok || ids.JobID(o) != job {
			w.t.Fatalf("extent %+v of job %v: page %d has no memory there: %v, of %d", e, job, p, ok, o)
		}
	}
}

// bring puts memory behind an extent that was granted without.
func (w *world) bring(job ids.JobID, e wire.Extent) {
	for _, x := range w.cold {
		if x.Off == e.Off && e.File == 0 {
			w.back(job, e.Off, e.Size)
		}
	}
}

// back puts memory behind pages in a job's file.
func (w *world) back(job ids.JobID, off, size uint64) {
	w.t.Helper()
	for p := off / 4096; p*4096 < off+size; p++ {
		if o, ok := w.backed[p]; ok && ids.JobID(o) != job {
			w.t.Fatalf("page %d gets memory in the file of job %v, and has it in that of %d", p, job, o)
		}
		w.backed[p] = alloc.Owner(job)
	}
}

// short tells whether the machine has not the memory for a reservation.
func (w *world) short(e Reserve) bool {
	pages := len(w.backed)
	for _, r := range e.Ranges {
		for p := r.Off / 4096; p*4096 < r.End(); p++ {
			if _, ok := w.backed[p]; !ok {
				pages++
			}
		}
	}
	return w.machine > 0 && uint64(pages)*4096 > w.machine
}

// copyObject is a copy for readers of other jobs.
func (w *world) copyObject(e CopyObject) {
	w.t.Helper()
	if !w.stale {
		w.touch(e.From, e.Of)
		w.touch(e.Place, e.Extent)
	}
	w.free(e.Extent, "overwritten by a copy")
	from, to := at(e.From, e.Of), at(e.Place, e.Extent)
	found := make(map[place]uint64)
	for p, t := range w.mem {
		if p.job == from.job && p.file == from.file && p.off >= from.off && (p.off < from.off+e.Of.Size || p.off == from.off) {
			found[place{to.job, to.file, to.off + p.off - from.off}] = t
		}
	}
	maps.Copy(w.mem, found)
	w.step(RestoreDone{e.Job, nil})
}

// free checks that nobody may touch the extent.
func (w *world) free(e wire.Extent, what string) {
	w.t.Helper()
	for o, x := range w.owned {
		if overlap(x, e) {
			w.t.Fatalf("extent %+v of %+v is %s with %+v", x, o, what, e)
		}
	}
}

func overlap(a, b wire.Extent) bool {
	return a.File == b.File && a.Off < b.Off+b.Size && b.Off < a.Off+a.Size
}

// own notes that a client may touch an extent, which no other object may use now.
func (w *world) own(k owner, e wire.Extent) {
	w.t.Helper()
	if e.File != 0 && !w.mapped[uint64(k.client)<<32|uint64(e.File)] {
		w.t.Fatalf("client %v was given file %d, which was not announced", k.client, e.File)
	}
	for o, x := range w.owned {
		if overlap(x, e) && (o.id != k.id || !o.pin || !k.pin) {
			w.t.Fatalf("%+v was given %+v, which %+v holds in %+v", k, e, o, x)
		}
	}
	w.owned[k] = e
}

func (w *world) toClient(e ToClient) {
	w.t.Helper()
	switch m := e.Msg.(type) {
	case *wire.Created:
		if w.created[m.Req] != nil && w.created[m.Req].Err == nil && w.created[m.Req].Extent != m.Extent {
			w.t.Fatalf("create %d answered twice: %+v, %+v", m.Req, w.created[m.Req], m)
		}
		w.created[m.Req] = m
	case *wire.Resolved:
		w.resolved = append(w.resolved, m)
		w.getter = append(w.getter, e.Client)
		if m.Result.Err == nil {
			w.own(owner{id: m.ID, client: e.Client, pin: true}, m.Extent)
			w.check(e.Client, m.ID, m.Extent)
		}
	case *wire.MapFile:
		k := uint64(e.Client)<<32 | uint64(m.File)
		w.mapped[k] = true
		if e.File != m.File || w.files[m.File] == "" {
			w.t.Fatalf("announced file %d, which is not there", m.File)
		}
	case *wire.UnmapFile:
		delete(w.mapped, uint64(e.Client)<<32|uint64(m.File))
		for o, x := range w.owned {
			if o.client == e.Client && x.File == m.File && m.File != 0 {
				w.t.Fatalf("client %d is to unmap file %d, in which it has %+v", e.Client, m.File, o)
			}
		}
	case *wire.Collect:
		w.collects++
	case *wire.Resync:
		w.resyncs = append(w.resyncs, e.Client)
	default:
		w.t.Fatalf("unexpected %T for client %v", m, e.Client)
	}
}

// check reads an object as a client would.
func (w *world) check(c ids.ClientID, id ids.ObjectID, e wire.Extent) {
	w.t.Helper()
	want, ok := w.sealed[id]
	if !ok {
		w.t.Fatalf("object %v is readable and was never sealed", id)
	}
	if got := w.mem[w.lies(c, e)]; e.Size > 0 && got != want {
		w.t.Fatalf("object %v at %+v holds %d, sealed was %d", id, e, got, want)
	}
}

func (w *world) toOwner(e ToOwner) {
	w.t.Helper()
	switch m := e.Msg.(type) {
	case ArgsPinned:
		k := NoteKey{Task: m.Task, Attempt: m.Attempt}
		w.argsOK[k] = m
		for _, v := range m.Values {
			w.check(w.c.findSet(m.Task, m.Attempt).req.Worker, v.ID, v.Extent)
		}
	case Lost:
		if m.Client == 0 && m.Task.IsZero() {
			w.gone = append(w.gone, m.ID)
		} else {
			w.lost = append(w.lost, m)
		}
	case Imported:
		if o := w.c.objs[m.ID].o; o == nil || !o.isHere() || o.attempt != m.Attempt {
			w.t.Fatalf("%+v, and the store has %+v", m, o)
		}
		w.imported++
	case Evicted:
		if o := w.c.objs[m.ID].o; o == nil || o.isHere() || len(o.elsewhere) == 0 {
			w.t.Fatalf("%+v, and the store has %+v", m, o)
		}
		w.evicted = append(w.evicted, m.ID)
	case ArgsRefused:
		w.refused = append(w.refused, m)
	case Packed:
		w.packed[m.ID] = true
	case Inventory:
		for _, l := range m.Left { // the owner knows nothing of it
			w.jobs = append(w.jobs, job{run: func() { w.step(DropAttempt(l)) }})
		}
		if !m.Asked || m.Left == nil {
			w.invent = append(w.invent, m)
		}
	case ArgsWait:
	case CreateWaits:
		if m.Task.IsZero() {
			w.asked = append(w.asked, e.Job)
		} else {
			w.yields = append(w.yields, m.Task)
		}
	case CreateReady:
		w.ready = append(w.ready, m)
		if !w.busyCPUs {
			w.jobs = append(w.jobs, job{run: func() { w.step(GoOn(m)) }})
		}
	default:
		w.t.Fatalf("unexpected %T for the owner of job %v", m, e.Job)
	}
}

func (w *world) spillWrite(e SpillWrite) {
	if w.failing || w.noSpill {
		w.step(SpillDone{Job: e.Job, Err: errors.New("disk full")})
		return
	}
	all, sizes := make([]bytesOf, len(e.Items)), make([]uint64, len(e.Items))
	if n := w.bytesOf(e.Items); w.most > 0 && w.onDisk()+n > w.most {
		w.step(SpillDone{Job: e.Job, Err: fmt.Errorf("no room for %d bytes", n)})
		return
	}
	for i, it := range e.Items {
		all[i], sizes[i] = bytesOf{0: w.mem[at(it.Place, it.Extent)]}, it.Extent.Size
		if it.Extent.Size > 0 {
			for p, t := range w.mem { // packed values within the extent
				if p.job == it.Place && p.file == it.Extent.File && p.off > it.Extent.Off && p.off < it.Extent.Off+it.Extent.Size {
					all[i][p.off-it.Extent.Off] = t
				}
			}
		}
	}
	w.step(SpillDone{Job: e.Job, Locs: w.newFile(all, sizes)})
}

func (w *world) bytesOf(items []SpillItem) (n uint64) {
	for _, it := range items {
		n += it.Extent.Size
	}
	return n
}

// newFile makes a spill file of objects.
func (w *world) newFile(all []bytesOf, sizes []uint64) (out []spill.Location) {
	w.nextLoc++
	off := uint64(format.Page)
	for i, b := range all {
		off = format.Place(off, sizes[i])
		l := spill.Location{File: w.nextLoc, Off: off, Size: sizes[i]}
		off += max(1, sizes[i]) // those without bytes have places of their own too
		w.disk[l] = b
		out = append(out, l)
	}
	objs := make([]format.Object, len(sizes))
	for i, n := range sizes {
		objs[i].Copy = &format.Copy{Size: n}
	}
	_, w.size[out[0].Key()] = format.Sizes(objs)
	return out
}

// unspill drops an object, and with the last one its file.
func (w *world) unspill(l spill.Location) {
	delete(w.disk, l)
	for x := range w.disk {
		if x.Key() == l.Key() {
			return
		}
	}
	delete(w.size, l.Key())
}

func (w *world) spillCopy(e SpillCopy, held []bytesOf) {
	if err := w.broken; err != nil || w.failing {
		w.copied(SpillDone{Job: e.Job, Err: cmp.Or(err, errors.New("disk full"))})
		return
	}
	for _, o := range e.Objects {
		if err := w.rotten[o.From.File]; err != nil {
			w.copied(SpillDone{Job: e.Job, Err: err})
			return
		}
	}
	sizes := make([]uint64, len(held))
	for i, o := range e.Objects {
		sizes[i] = o.From.Size
	}
	w.copied(SpillDone{Job: e.Job, Locs: w.newFile(held, sizes)})
}

func (w *world) spillRead(e SpillRead, held bytesOf) {
	w.t.Helper()
	if w.broken != nil {
		w.step(RestoreDone{e.Job, w.broken})
		return
	}
	if !w.stale {
		w.touch(e.Place, e.Extent)
	}
	w.free(e.Extent, "overwritten by a restore")
	if w.failed == nil {
		w.failed = map[readOf]int{}
	}
	k := readOf{e.Loc, e.Place}
	if w.failed[k]++; w.shaky && w.failed[k]%maxTries != 0 {
		w.step(RestoreDone{e.Job, errCancelled})
		return
	}
	if held == nil {
		for _, o := range w.c.all() {
			if o.spilled && o.loc == e.Loc {
				w.t.Fatalf("read of %+v, which is not there", e.Loc)
			}
		}
		w.step(RestoreDone{e.Job, fmt.Errorf("%w", spill.ErrMissing)}) // dropped since
		return
	}
	for off, t := range held {
		to := at(e.Place, e.Extent)
		to.off += off
		w.mem[to] = t
	}
	w.step(RestoreDone{e.Job, nil})
}

// run carries out one job that is due, in random order if rnd is given.
func (w *world) run(rnd *rand.Rand) bool {
	if len(w.jobs) == 0 {
		return false
	}
	i := 0
	if rnd != nil {
		i = rnd.Intn(len(w.jobs))
	}
	j := w.jobs[i]
	w.jobs = slices.Delete(w.jobs, i, i+1)
	j.run()
	return true
}

// relist runs all jobs, and lets time pass for the timer, for at most d.
func (w *world) relist(d int64) {
	end := w.now + d
	for {
		for w.run(nil) {
		}
		if w.timer == 0 || w.timer > end {
			w.now = end
			return
		}
		w.now = max(w.now, w.timer)
		w.timer = 0
		w.step(Tick{})
	}
}

var errCancelled = errors.New("cancelled")

// recoverJobs ends an earlier core's reads and writes, as spill storage does before Drained.
func (x *chaos) recoverJobs(old []job) {
	for _, j := range old {
		switch {
		case j.stop == nil:
			x.jobs = append(x.jobs, j)
		case x.rnd.Intn(2) == 0:
			x.stale = true
			j.run()
			x.stale = false
		default:
			j.stop()
		}
	}
	x.step(Drained{Epoch: x.epoch, Sizes: maps.Clone(x.size)})
}

// What clients do.

func (w *world) join(cs ...ids.ClientID) {
	for _, c := range cs {
		w.joinJob(c, 1)
	}
}

// joinJob joins a client of a job.
func (w *world) joinJob(c ids.ClientID, job ids.JobID) {
	w.job[c] = job
	w.step(ClientJoined{Client: c, PID: int32(c), Job: job})
}

var reqs uint64

func (w *world) create(c ids.ClientID, id ids.ObjectID, attempt uint32, size uint64, task ids.TaskID) uint64 {
	w.t.Helper()
	reqs++
	w.step(FromClient{c, &wire.Create{Req: reqs, ID: id, Attempt: attempt, Size: size, Task: task}})
	return reqs
}

// write takes a grant over and fills it.
func (w *world) write(c ids.ClientID, attempt uint32, m *wire.Created) {
	w.t.Helper()
	w.bring(w.job[c], m.Extent)
	w.touch(w.job[c], m.Extent)
	w.own(owner{id: m.ID, attempt: attempt, client: c}, m.Extent)
	w.tag++
	w.mem[w.lies(c, m.Extent)] = w.tag
}

func (w *world) seal(c ids.ClientID, attempt uint32, m *wire.Created, size uint64) {
	w.t.Helper()
	delete(w.owned, owner{id: m.ID, attempt: attempt, client: c})
	if _, ok := w.sealed[m.ID]; !ok {
		w.sealed[m.ID] = w.mem[w.lies(c, m.Extent)]
	}
	w.step(SealObject{Client: c, ID: m.ID, Attempt: attempt, Size: size, Meta: []byte{byte(attempt), 7}})
}

// put creates, writes and seals; the create must be granted without a wait for others.
func (w *world) put(c ids.ClientID, id ids.ObjectID, size uint64) *wire.Created {
	w.t.Helper()
	r := w.create(c, id, 0, size, ids.TaskID{})
	w.relist(0)
	m := w.created[r]
	if m == nil || m.Err != nil {
		w.t.Fatalf("create of %d bytes: %+v; %s", size, m, w.c.figures(size))
	}
	w.write(c, 0, m)
	w.seal(c, 0, m, size)
	return m
}

func (w *world) unpin(c ids.ClientID, id ids.ObjectID, n uint32) {
	w.t.Helper()
	delete(w.owned, owner{id: id, client: c, pin: true})
	w.step(FromClient{c, &wire.Unpin{ID: id, N: n}})
}

// replay gives what a new core is built from.
func (w *world) replay(connected bool) Replay {
	w.epoch++
	r := Replay{Connected: connected, Epoch: w.epoch, Files: w.files, Draining: connected}
	for slot, rec := range w.records {
		rec.Payload = w.payload[slot]
		r.Entries = append(r.Entries, record.Entry{Slot: slot, Record: rec})
	}
	slices.SortFunc(r.Entries, func(a, b record.Entry) int { return int(a.Slot) - int(b.Slot) })
	if connected {
		r.Notes = w.notes.List()
	}
	return r
}

// crash loses the core and builds a new one from the records.
func (w *world) crash(connected bool) {
	w.t.Helper()
	r := w.replay(connected)
	for p, o := range w.backed { // what no record names is punched out
		if !slices.ContainsFunc(r.Entries, func(e record.Entry) bool {
			return e.File == 0 && e.Job == ids.JobID(o) && (e.Resident || e.State == record.StateRestoring) && e.Block.Off < (p+1)*4096 && p*4096 < e.Block.End()
		}) {
			delete(w.backed, p)
		}
	}
	w.jobs = slices.DeleteFunc(w.jobs, func(j job) bool { return j.reserve })
	if !connected {
		w.jobs = nil
		w.notes = Notebook{}
	}
	w.timer = 0
	old := w.c
	c, evs := Rebuild(w.cfg, r)
	w.c = c
	live := make(map[spill.Location]bool)
	for _, l := range c.Live() {
		if live[l] = true; w.disk[l] == nil && w.broken == nil {
			w.t.Fatalf("after the rebuild an object lies at %+v, where nothing is", l)
		}
	}
	for l := range w.disk { // as spill storage does
		if !live[l] {
			w.unspill(l)
		}
	}
	want := len(old.objs)
	for _, r := range old.objs {
		if !r.o.resident && !r.o.spilled {
			want-- // on other nodes only: a note says so
		}
	}
	if got := len(c.objs); got < want && w.broken == nil {
		w.t.Fatalf("%d objects after the rebuild, %d before", got, want)
	}
	for _, ev := range evs {
		w.step(ev)
	}
}
