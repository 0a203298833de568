package objectstore

import (
	"errors"
	"fmt"
	"math/rand"
	"slices"
	"testing"
	"time"

	"mobula/internal/ids"
	"mobula/objectstore/index"
	"mobula/objectstore/spill"
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

	mem     map[place]uint64          // what was written at the start of each extent
	disk    map[spill.Location]uint64 // spilled copies
	sealed  map[ids.ObjectID]uint64   // what each object must hold
	owned   map[owner]wire.Extent     // extents that clients may touch now
	records map[uint32]index.Record
	payload map[uint32][]byte
	notes   map[NoteKey]Event
	order   []NoteKey
	files   map[uint32]string
	jobs    []job // answers that are due
	failing bool  // spill writes and fallback files
	noSpill bool  // spill writes only
	noMem   bool  // reservations
	broken  error // of reads
	shaky   bool  // reads of a file fail up to the last try, for no lasting reason
	failed  map[uint64]int
	backed  map[uint64]bool
	cold    []wire.Extent // granted without memory at some time
	nextLoc uint64
	nextF   uint32
	tag     uint64
	epoch   uint64

	created  map[uint64]*wire.Created
	resolved []*wire.Resolved
	getter   []ids.ClientID // of each resolved
	argsOK   map[NoteKey]ArgsPinned
	lost     []Lost
	refused  []ArgsRefused
	packed   map[ids.ObjectID]bool
	invent   []Inventory
	collects int
	yields   []ids.TaskID
	resyncs  []ids.ClientID
	logs     []string
	mapped   map[uint64]bool // client<<32|file: announced
}

// job is work under way; stop ends it without doing it, if an earlier core's work can be.
type job struct {
	run, stop func()
}

type place struct {
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
	return &world{t: t, cfg: cfg, c: NewCore(cfg), now: 1e9,
		mem: map[place]uint64{}, disk: map[spill.Location]uint64{}, sealed: map[ids.ObjectID]uint64{}, owned: map[owner]wire.Extent{},
		records: map[uint32]index.Record{}, payload: map[uint32][]byte{}, notes: map[NoteKey]Event{}, files: map[uint32]string{}, backed: map[uint64]bool{},
		created: map[uint64]*wire.Created{}, argsOK: map[NoteKey]ArgsPinned{}, packed: map[ids.ObjectID]bool{}, mapped: map[uint64]bool{}}
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
	if err := validate(w.c); err != nil {
		w.t.Fatalf("after %T: %v", ev, err)
	}
	for _, f := range effects {
		w.do(f)
	}
}

func (w *world) do(f Effect) {
	w.t.Helper()
	switch e := f.(type) {
	case ToClient:
		w.toClient(e)
	case ToOwner:
		w.toOwner(e)
	case SpillWrite:
		w.jobs = append(w.jobs, job{func() { w.spillWrite(e) }, func() { w.step(SpillDone{Job: e.Job, Err: errCancelled}) }})
	case SpillRead:
		w.jobs = append(w.jobs, job{func() { w.spillRead(e) }, func() { w.step(RestoreDone{e.Job, errCancelled}) }})
	case SpillRemove:
		for _, l := range e.Locs {
			if _, ok := w.disk[l]; !ok && w.broken == nil {
				w.t.Fatalf("location %v removed twice", l)
			}
			for x := range w.disk {
				if x.File == l.File {
					delete(w.disk, x)
				}
			}
		}
	case Reserve:
		w.jobs = append(w.jobs, job{run: func() {
			if e.Look && !w.noMem {
				w.cold = append(w.cold, wire.Extent{Off: e.Ranges[0].Off, Size: e.Ranges[0].Size})
				w.step(ReserveDone{e.Job, nil})
				return
			}
			if w.noMem {
				w.step(ReserveDone{e.Job, errors.New("no memory")})
				return
			}
			for _, r := range e.Ranges {
				for p := r.Off / 4096; p < (r.Off+r.Size)/4096; p++ {
					w.backed[p] = true
				}
			}
			w.step(ReserveDone{e.Job, nil})
		}})
	case Punch:
		for _, r := range e.Ranges {
			w.free(wire.Extent{Off: r.Off, Size: r.Size}, "punched out")
			for p := r.Off / 4096; p < (r.Off+r.Size)/4096; p++ {
				delete(w.backed, p)
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
		w.touch(e.Extent)
		for _, p := range e.Parts {
			w.mem[place{e.Extent.File, e.Extent.Off + p.Off}] = tagOf(p.Data)
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
		if _, ok := w.notes[e.Key]; !ok {
			w.order = append(w.order, e.Key)
		}
		w.notes[e.Key] = e.Event
	case Forget:
		delete(w.notes, e.Key)
		w.order = slices.DeleteFunc(w.order, func(k NoteKey) bool { return k == e.Key })
	case spillReady:
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
func (w *world) touch(e wire.Extent) {
	w.t.Helper()
	if e.File != 0 {
		if w.files[e.File] == "" {
			w.t.Fatalf("extent in file %d, which is not there", e.File)
		}
		return
	}
	for p := e.Off / 4096; p*4096 < e.Off+e.Size; p++ {
		if !w.backed[p] {
			w.t.Fatalf("extent %+v: page %d has no memory", e, p)
		}
	}
}

// bring puts memory behind an extent that was granted without.
func (w *world) bring(e wire.Extent) {
	for _, x := range w.cold {
		if x.Off == e.Off && e.File == 0 {
			for p := e.Off / 4096; p*4096 < e.Off+e.Size; p++ {
				w.backed[p] = true
			}
		}
	}
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
			w.check(m.ID, m.Extent)
		}
	case *wire.MapFile:
		w.mapped[uint64(e.Client)<<32|uint64(m.File)] = true
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
func (w *world) check(id ids.ObjectID, e wire.Extent) {
	w.t.Helper()
	want, ok := w.sealed[id]
	if !ok {
		w.t.Fatalf("object %v is readable and was never sealed", id)
	}
	if got := w.mem[place{e.File, e.Off}]; e.Size > 0 && got != want {
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
			w.check(v.ID, v.Extent)
		}
	case Lost:
		w.lost = append(w.lost, m)
	case ArgsRefused:
		w.refused = append(w.refused, m)
	case Packed:
		w.packed[m.ID] = true
	case Inventory:
		w.invent = append(w.invent, m)
	case ArgsWait:
	case CreateWaits:
		w.yields = append(w.yields, m.Task)
	default:
		w.t.Fatalf("unexpected %T for the owner of job %v", m, e.Job)
	}
}

func (w *world) spillWrite(e SpillWrite) {
	if w.failing || w.noSpill {
		w.step(SpillDone{Job: e.Job, Err: errors.New("disk full")})
		return
	}
	done := SpillDone{Job: e.Job}
	for _, it := range e.Items {
		w.nextLoc++
		l := spill.Location{File: w.nextLoc, Size: it.Extent.Size}
		w.disk[l] = w.mem[place{it.Extent.File, it.Extent.Off}]
		if it.Extent.Size > 0 {
			for p, t := range w.mem { // packed values within the extent
				if p.file == it.Extent.File && p.off > it.Extent.Off && p.off < it.Extent.Off+it.Extent.Size {
					w.disk[spill.Location{File: w.nextLoc, Off: p.off - it.Extent.Off, Size: 1 << 62}] = t
				}
			}
		}
		done.Locs = append(done.Locs, l)
	}
	w.step(done)
}

func (w *world) spillRead(e SpillRead) {
	w.t.Helper()
	if w.broken != nil {
		w.step(RestoreDone{e.Job, w.broken})
		return
	}
	w.touch(e.Extent)
	w.free(e.Extent, "overwritten by a restore")
	if w.failed == nil {
		w.failed = map[uint64]int{}
	}
	if w.failed[e.Loc.File]++; w.shaky && w.failed[e.Loc.File]%maxTries != 0 {
		w.step(RestoreDone{e.Job, errCancelled})
		return
	}
	t, ok := w.disk[e.Loc]
	if !ok {
		for _, o := range w.c.all() {
			if o.spilled && o.loc == e.Loc {
				w.t.Fatalf("read of %+v, which is not there", e.Loc)
			}
		}
		w.step(RestoreDone{e.Job, fmt.Errorf("%w", spill.ErrMissing)}) // dropped since
		return
	}
	w.mem[place{e.Extent.File, e.Extent.Off}] = t
	for l, t := range w.disk {
		if l.File == e.Loc.File && l.Size == 1<<62 {
			w.mem[place{e.Extent.File, e.Extent.Off + l.Off}] = t
		}
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

// settle runs all jobs, and lets time pass for the timer, for at most d.
func (w *world) settle(d int64) {
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
			j.run()
		default:
			j.stop()
		}
	}
	x.step(Drained{x.epoch})
}

// What clients do.

func (w *world) join(cs ...ids.ClientID) {
	for _, c := range cs {
		w.step(ClientJoined{Client: c, PID: int32(c)})
	}
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
	w.bring(m.Extent)
	w.touch(m.Extent)
	w.own(owner{id: m.ID, attempt: attempt, client: c}, m.Extent)
	w.tag++
	w.mem[place{m.Extent.File, m.Extent.Off}] = w.tag
}

func (w *world) seal(c ids.ClientID, attempt uint32, m *wire.Created, size uint64) {
	w.t.Helper()
	delete(w.owned, owner{id: m.ID, attempt: attempt, client: c})
	if _, ok := w.sealed[m.ID]; !ok {
		w.sealed[m.ID] = w.mem[place{m.Extent.File, m.Extent.Off}]
	}
	w.step(SealObject{Client: c, ID: m.ID, Attempt: attempt, Size: size, Meta: []byte{byte(attempt), 7}})
}

// put creates, writes and seals; the create must be granted without a wait for others.
func (w *world) put(c ids.ClientID, id ids.ObjectID, size uint64) *wire.Created {
	w.t.Helper()
	r := w.create(c, id, 0, size, ids.TaskID{})
	w.settle(0)
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

// crash loses the core and builds a new one from the records.
func (w *world) crash(connected bool) {
	w.t.Helper()
	w.epoch++
	r := Replay{Connected: connected, Epoch: w.epoch, Files: w.files, Draining: connected}
	for slot, rec := range w.records {
		rec.Payload = w.payload[slot]
		r.Entries = append(r.Entries, index.Entry{Slot: slot, Record: rec})
	}
	slices.SortFunc(r.Entries, func(a, b index.Entry) int { return int(a.Slot) - int(b.Slot) })
	if connected {
		for _, k := range w.order {
			r.Notes = append(r.Notes, Note{k, w.notes[k]})
		}
	} else {
		w.jobs = nil
		w.notes, w.order = map[NoteKey]Event{}, nil
	}
	w.timer = 0
	old := w.c
	c, evs := Rebuild(w.cfg, r)
	w.c = c
	live := make(map[uint64]bool)
	for _, l := range c.Live() {
		live[l.File] = true
	}
	for l := range w.disk { // as spill storage does
		if !live[l.File] {
			delete(w.disk, l)
		}
	}
	if got, want := len(c.objs), len(old.objs); got < want && w.broken == nil {
		w.t.Fatalf("%d objects after the rebuild, %d before", got, want)
	}
	for _, ev := range evs {
		w.step(ev)
	}
}
