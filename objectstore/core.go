package objectstore

import (
	"time"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/objectstore/alloc"
	"mobula/objectstore/spill"
	"mobula/wire"
)

// Core is the store's logic: which bytes are whose, who has pinned what, what is sealed, and who
// waits. It reads no clock and does no I/O: Step takes one event and says what to do.
type Core struct {
	cfg   Config
	now   int64
	alloc *alloc.Allocator
	out   []Effect

	objs     map[ids.ObjectID]ref
	orphans  map[ids.ObjectID][]ref // what had the id before, and is still pinned
	grants   map[grantKey]*grant
	waiting  map[grantKey]*demand // creates that are not granted yet
	packing  map[ids.ObjectID]*packing
	sets     map[ids.TaskID][]*argSet
	argWait  []*argSet
	ahead    []ids.ObjectID          // to be read when nobody asks for anything else
	idle     map[ids.TaskID]bool     // tasks that wait in a get
	creating map[ids.TaskID]int      // tasks' waiting creates
	clients  map[ids.ClientID]uint32 // and the slot of its record
	jobOf    map[ids.ClientID]ids.JobID
	pinned   map[*object]struct{}        // objects that clients have pinned
	old      map[ids.ClientID]*oldClient // of before a restart, undeclared
	epoch    uint64

	copies  map[*object]struct{}  // for processes of other jobs
	adrift  []*object             // copies of before a restart whose object is not there any more
	over    map[ids.JobID]NoteKey // jobs that have ended, whose files are there still
	warmFor alloc.Owner           // who asked for room last, if anybody did
	warmAny bool

	queues  [lanes]laneQueue
	rereads []reread
	ticket  uint64
	jobs    map[uint64]any // *demand, *spillJob, alloc.Range (reserved ahead)
	job     uint64
	note    uint64

	cold   lru // unpinned primaries in the segment
	second lru // unpinned, with a valid spilled copy

	spills, restores, reserving, fallbacks int
	reservingCreates                       int
	spillingBytes                          uint64
	grantBytes                             uint64 // blocks and files granted, unsealed
	pinnedBytes                            uint64
	fallbackBytes                          uint64 // of fallback files
	argBytes                               uint64
	activeSets                             int
	argsFull                               bool  // the head of argWait does not fit
	argsAt                                 int64 // nobody of argWait is let in before
	mark                                   uint64
	draining                               []drain           // that an earlier core's reads may still fill
	recovering                             bool              // Drained is to come: no spill I/O before it
	drainFiles                             map[uint32]string // fallback files of no record, likewise

	freeSlots []uint32
	nextSlot  uint32

	timer     int64 // armed for, 0: none
	wake      int64 // earliest time wanted by this step
	lastNeed  int64 // of a create or restore
	need      recentNeed
	room      uint64 // bytes that may have memory behind them; 0: Limit
	index     uint64 // bytes of the index, which count as the store's
	collected int64
	spillAt   int64 // not before: clients are collecting
	coldAt    int64 // no cold memory before: a reservation failed
	coldErr   error
	disk      diskState
	stall     stallState
	drain     drainState
	lastHope  lastHope
	logged    map[string]int64
	counts    Counters
}

// diskState tells how spill writes fare.
type diskState struct {
	err     error // of the last write; nil: it worked
	fails   int
	first   int64 // of this series of failures
	retryAt int64
}

// stallState watches for progress of the head of the queue.
type stallState struct {
	best  uint64 // most bytes that were ever free or freeable while it waited
	stuck bool   // it waited out Stall; cleared by progress
}

type grantKey struct {
	id      ids.ObjectID
	attempt uint32
}

// grant is an extent that a client may write.
type grant struct {
	grantKey
	client ids.ClientID
	task   ids.TaskID
	size   uint64
	block  alloc.Block
	job    ids.JobID // the writer's
	file   uint32
	path   string
	slot   uint32
	cold   bool // the writer brings the memory: nothing is known of it until it is sealed
	doomed bool // its job is gone: it will not be sealed
}

func (g *grant) extent() wire.Extent {
	if g.file != 0 {
		return wire.Extent{File: g.file, Size: g.size}
	}
	return wire.Extent{Off: g.block.Off, Size: g.size}
}

// NewCore makes an empty store. The configuration must be valid.
func NewCore(cfg Config) *Core {
	return &Core{
		cfg: cfg, alloc: alloc.New(cfg.Limit),
		objs: make(map[ids.ObjectID]ref), orphans: make(map[ids.ObjectID][]ref),
		grants: make(map[grantKey]*grant), waiting: make(map[grantKey]*demand), packing: make(map[ids.ObjectID]*packing),
		sets: make(map[ids.TaskID][]*argSet), idle: make(map[ids.TaskID]bool), creating: make(map[ids.TaskID]int),
		clients: make(map[ids.ClientID]uint32), jobOf: make(map[ids.ClientID]ids.JobID), pinned: make(map[*object]struct{}), old: make(map[ids.ClientID]*oldClient),
		copies: make(map[*object]struct{}), over: make(map[ids.JobID]NoteKey),
		jobs: make(map[uint64]any), logged: make(map[string]int64),
	}
}

// Step takes an event at a time in Unix nanoseconds. The slice is valid until the next Step.
func (c *Core) Step(now int64, ev Event) []Effect {
	clear(c.out)
	c.out, c.now, c.wake = c.out[:0], now, 0
	if c.counts.Since == 0 {
		c.counts.Since = now
	}
	c.handle(ev)
	c.pump()
	c.arm()
	return c.out
}

func (c *Core) handle(ev Event) {
	switch e := ev.(type) {
	case FromClient:
		c.fromClient(e)
	case ClientJoined:
		c.clientJoined(e)
	case ClientGone:
		c.clientGone(e.Client)
	case SealObject:
		c.seal(e)
	case DropAttempt:
		c.dropAttempt(grantKey{e.ID, e.Attempt})
	case Pack:
		c.pack(e)
	case PinForGet:
		c.pinForGet(e)
	case UnpinForGet:
		c.unpinForGet(e)
	case PinArgs:
		c.pinArgs(e, false)
	case heldArgs:
		c.holdArgs(e)
	case ReadAhead:
		c.readAhead(e.IDs)
	case UnpinArgs:
		c.unpinArgs(e.Task, e.Attempt)
	case KeepArgs:
		c.keepArgs(e)
	case ArgsIdle:
		c.argsIdle(e)
	case Free:
		for _, id := range e.IDs {
			c.free(id)
		}
	case DropJob:
		c.dropJob(e.Job)
	case SpillDone:
		c.spillDone(e)
	case RestoreDone:
		c.restoreDone(e)
	case ReserveDone:
		c.reserveDone(e)
	case FallbackDone:
		c.fallbackDone(e)
	case SetRoom:
		c.room = e.Bytes
	case IndexTakes:
		c.index = max(c.index, e.Bytes)
	case Tick:
		c.timer = 0
	case Drained:
		if e.Epoch == c.epoch {
			c.drained()
			c.emit(SpillReady{})
		}
	case Inspect:
		e.Do(c)
	case recalled:
		c.emit(Forget{e.Key})
		c.handle(e.Event)
	case RecoverSpill:
		c.emit(e)
	case begin:
		c.begin(e)
	}
}

func (c *Core) fromClient(e FromClient) {
	switch m := e.Msg.(type) {
	case *wire.Create:
		c.create(e.Client, m)
	case *wire.Abort:
		c.abort(e.Client, grantKey{m.ID, m.Attempt})
	case *wire.Unpin:
		c.unpin(e.Client, m.ID, m.N)
	case *wire.Holdings:
		c.holdings(e.Client, m)
	}
}

func (c *Core) emit(f Effect) { c.out = append(c.out, f) }

func (c *Core) toClient(id ids.ClientID, m wire.Msg) {
	if _, ok := c.clients[id]; ok {
		c.emit(ToClient{Client: id, Msg: m})
	}
}

// announce tells a client of a fallback file before each use: it may have unmapped it
// since the last one.
func (c *Core) announce(id ids.ClientID, file uint32, size uint64, path string) {
	if _, ok := c.clients[id]; ok && file != 0 {
		c.emit(ToClient{Client: id, Msg: &wire.MapFile{File: file, Size: size, Path: path}, File: file})
	}
}

// dropFile ends a fallback file of which nothing is pinned. Any client may have been told of it, also by a core before this one.
func (c *Core) dropFile(file uint32, path string) {
	for _, id := range c.sortedClients() {
		c.toClient(id, &wire.UnmapFile{File: file})
	}
	c.emit(DropFile{file, path})
}

func (c *Core) newJob(what any) uint64 {
	c.job++
	c.jobs[c.job] = what
	return c.job
}

// takeJob finds and ends a job; nil for one of an earlier core.
func takeJob[T any](c *Core, job uint64) (T, bool) {
	v, ok := c.jobs[job].(T)
	if ok {
		delete(c.jobs, job)
	}
	return v, ok
}

func (c *Core) newSlot() uint32 {
	if n := len(c.freeSlots); n > 0 {
		s := c.freeSlots[n-1]
		c.freeSlots = c.freeSlots[:n-1]
		return s
	}
	c.nextSlot++
	return c.nextSlot - 1
}

func (c *Core) clearSlot(s uint32) {
	c.emit(ClearRecord{s})
	c.freeSlots = append(c.freeSlots, s)
}

func (c *Core) freeBlock(b alloc.Block) {
	if err := c.alloc.Free(b); err != nil {
		panic(err) // the books are wrong: the core is rebuilt from the index
	}
}

// wakeAt asks for a Tick no later than at.
func (c *Core) wakeAt(at int64) {
	if c.wake == 0 || at < c.wake {
		c.wake = at
	}
}

// arm sets the timer where this step wants an earlier one than is set.
func (c *Core) arm() {
	if c.wake != 0 && (c.timer == 0 || c.wake < c.timer) {
		c.timer = c.wake
		c.emit(SetTimer{c.wake})
	}
}

// log emits a line at most once in LogEvery for each message.
func (c *Core) log(msg string, err error) {
	if at, ok := c.logged[msg]; ok && c.now-at < int64(c.cfg.LogEvery) {
		return
	}
	c.logged[msg] = c.now
	c.emit(Log{msg, err})
}

func (c *Core) after(d time.Duration) int64 { return c.now + int64(d) }

// figures is the end of an error that says why there is no room.
func (c *Core) figures(need uint64) string {
	return errs.New(errs.CodeUnknown, "%d bytes asked, limit %d, held %d, pinned %d, being written %d, free %d, in fallback files %d of %d",
		need, c.alloc.Limit(), c.alloc.Held(), c.pinnedBytes, c.grantBytes, c.freeBytes(), c.fallbackBytes, c.cfg.FallbackBytes).Msg
}

// locs is a helper for one location.
func locs(l spill.Location) []spill.Location { return []spill.Location{l} }
