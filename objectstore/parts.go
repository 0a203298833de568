package objectstore

import (
	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/internal/queue"
	"mobula/objectstore/alloc"
	"mobula/objectstore/spill"
)

// Core is the store's logic: which bytes are whose, who has pinned what, what is sealed, and who
// waits. It reads no clock and does no I/O: Step takes one event and says what to do.
//
// It is composed of parts, each with state and methods of its own. They are listed from the lowest to the highest. A part calls those
// before it directly, and asks those behind it by an interface that it declares and the Core satisfies: so each can be tested with the parts that it
// is made of alone.
type Core struct {
	*step
	*clients
	*space
	*progress
	*objects
	*demands
	*restores
	*creates
	*nodes
	*packs
	*copies
	*gets
	*args
	*spilling
	*placing
	*recovery
}

// NewCore makes an empty store. The configuration must be valid.
func NewCore(cfg Config) *Core {
	s := &step{cfg: cfg, jobs: make(map[uint64]any), logged: make(map[string]int64)}
	c := &Core{step: s}
	c.clients = newClients(s)
	c.space = &space{step: s, alloc: alloc.New(cfg.Limit)}
	c.progress = &progress{step: s}
	c.objects = newObjects(s, c.clients, c.space, c.progress)
	c.demands = &demands{step: s, space: c.space}
	c.restores = &restores{step: s, clients: c.clients, space: c.space, objects: c.objects, demands: c.demands, up: c}
	c.creates = newCreates(s, c.clients, c.space, c.objects, c.demands, c.restores)
	c.nodes = &nodes{step: s, progress: c.progress, objects: c.objects, restores: c.restores, creates: c.creates, exports: make(map[exportKey]*export)}
	c.packs = &packs{step: s, space: c.space, objects: c.objects, demands: c.demands, restores: c.restores, packing: make(map[ids.ObjectID]*packing)}
	c.copies = &copies{step: s, clients: c.clients, space: c.space, objects: c.objects, over: make(map[ids.JobID]NoteKey)}
	c.gets = &gets{step: s, clients: c.clients, objects: c.objects, restores: c.restores, creates: c.creates, copies: c.copies}
	c.args = newArgs(s, c.clients, c.space, c.progress, c.objects, c.restores, c.creates, c.copies, c)
	c.spilling = &spilling{step: s, clients: c.clients, space: c.space, progress: c.progress, objects: c.objects}
	c.placing = &placing{step: s, clients: c.clients, space: c.space, progress: c.progress, objects: c.objects, demands: c.demands, restores: c.restores,
		nodes: c.nodes, creates: c.creates, packs: c.packs, copies: c.copies, args: c.args, spilling: c.spilling}
	c.recovery = &recovery{step: s, clients: c.clients, space: c.space, objects: c.objects, creates: c.creates, copies: c.copies, restores: c.restores}
	return c
}

// step is what every part has in common: the configuration, the time and output of the step under way, and what the shell has under way.
type step struct {
	cfg        Config
	now        int64
	out        []Effect
	jobs       map[uint64]any // *demand, *spillJob, *copyJob, *reservation
	job        uint64
	note       uint64
	epoch      uint64
	recovering bool  // Drained is to come: no spill I/O before it
	timer      int64 // armed for, 0: none
	wake       int64 // earliest time wanted by this step
	logged     map[string]int64
	counts     Counters
}

// clients is the processes that read and write, and what is told to them.
type clients struct {
	*step
	byID  map[ids.ClientID]uint32 // and the slot of its record
	jobOf map[ids.ClientID]ids.JobID
	old   map[ids.ClientID]*oldClient // of before a restart, undeclared
}

func newClients(s *step) *clients {
	return &clients{step: s, byID: make(map[ids.ClientID]uint32), jobOf: make(map[ids.ClientID]ids.JobID), old: make(map[ids.ClientID]*oldClient)}
}

// space is the segment's bytes: which are taken, which have memory behind them, and how many there may be.
type space struct {
	*step
	alloc          *alloc.Allocator
	memoryTarget   uint64 // bytes that may have memory behind them; 0: Limit
	index          uint64 // bytes of the index, which count as the store's
	pinnedBytes    uint64
	grantBytes     uint64 // blocks and files granted, unsealed
	putBytes       uint64 // of that, not of tasks
	spillingBytes  uint64
	fallbackBytes  uint64 // of fallback files
	reserving      int
	reserveRetryAt int64 // no cold memory before: a reservation failed
	reserveErr     error
	lastOwner      alloc.Owner // who asked for room last, if anybody did
	hasLastOwner   bool
	peak           recentPeak
	lastDemandAt   int64 // of a create or restore
}

// progress is how spill writes and the head of the queue fare, and who was asked to let go of what.
type progress struct {
	*step
	disk        diskState
	stall       stallState
	fullDisk    fullDiskState
	lastCollect collectState
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
	best    uint64 // most bytes that were ever free or freeable while it waited
	stalled bool   // it waited out Stall; cleared by progress
}

// objects is the books: every object, who has it pinned, where its bytes are, and in what order they may go.
type objects struct {
	*step
	clients     *clients
	space       *space
	progress    *progress
	objs        map[ids.ObjectID]ref
	orphans     map[ids.ObjectID][]ref // what had the id before, and is still pinned
	allCopies   map[*object]struct{}   // for processes of other jobs
	pinned      map[*object]struct{}   // objects that clients have pinned
	viewedBytes uint64                 // of these
	cold        lru                    // unpinned primaries in the segment
	second      lru                    // unpinned, with a valid spilled copy
	outside     lru                    // unpinned primaries in fallback files
	files       spillFiles
	mark        uint64 // of the last count that went through objects
	freeSlots   []uint32
	nextSlot    uint32
}

func newObjects(s *step, cs *clients, sp *space, pr *progress) *objects {
	return &objects{step: s, clients: cs, space: sp, progress: pr, objs: make(map[ids.ObjectID]ref), orphans: make(map[ids.ObjectID][]ref),
		allCopies: make(map[*object]struct{}), pinned: make(map[*object]struct{}), files: spillFiles{byKey: make(map[spill.FileKey]*spillFile)}}
}

// demands is the demands for memory that wait, a lane for each kind.
type demands struct {
	*step
	space  *space
	queues [lanes]laneQueue
	ticket uint64
}

// restores brings objects back into memory from spill storage, or from another job's file.
type restores struct {
	*step
	clients     *clients
	space       *space
	objects     *objects
	demands     *demands
	up          restoresUp
	underWay    int // reads here, and from other nodes
	forNodes    int // reads here of what other nodes wait for
	readRetries []readRetry
}

// restoresUp is those who wait for an object, and the nodes that it may be read from.
type restoresUp interface {
	withoutMemory(d *demand, err error)
	importInto(d *demand, job uint64, to SpillRead)
	importFailed(d *demand, lost bool) bool
	exportsOf(o *object) []*export
	exported(x *export)
	endExport(k exportKey, why *errs.Error)
	answerGet(client ids.ClientID, id ids.ObjectID, r ref, refs []ids.ObjectID)
	answerSet(s *argSet)
	failSet(s *argSet, i int, err *errs.Error)
	noRoom(s *argSet, err *errs.Error) (refused bool)
}

// nodes is the copies that objects have on other nodes, and the pins of those on objects here.
type nodes struct {
	*step
	progress *progress
	objects  *objects
	restores *restores
	creates  *creates
	exports  map[exportKey]*export
}

// creates is the extents that clients write, from the request to the seal.
type creates struct {
	*step
	clients          *clients
	space            *space
	objects          *objects
	demands          *demands
	restores         *restores
	grants           map[grantKey]*grant
	waiting          map[grantKey]*demand // creates that are not granted yet
	creating         map[ids.TaskID]int   // tasks' waiting creates
	lenders          map[lenderKey]*lender
	reservingCreates int
}

func newCreates(s *step, cs *clients, sp *space, os *objects, dm *demands, rs *restores) *creates {
	return &creates{step: s, clients: cs, space: sp, objects: os, demands: dm, restores: rs, grants: make(map[grantKey]*grant),
		waiting: make(map[grantKey]*demand), creating: make(map[ids.TaskID]int), lenders: make(map[lenderKey]*lender)}
}

// packs fuses small values that owners have no room for.
type packs struct {
	*step
	space    *space
	objects  *objects
	demands  *demands
	restores *restores
	packing  map[ids.ObjectID]*packing
}

// copies is what other jobs' processes read, and the jobs' files.
type copies struct {
	*step
	clients       *clients
	space         *space
	objects       *objects
	orphanBlocks  []*object             // copies of packed blocks of before a restart, of which the block is not there any more
	over          map[ids.JobID]NoteKey // jobs that have ended, whose files are there still
	inFlightReads []inFlightRead        // that an earlier core's reads may still fill
}

// gets pins what clients have asked for.
type gets struct {
	*step
	clients  *clients
	objects  *objects
	restores *restores
	creates  *creates
	copies   *copies
}

// args pins the arguments of tasks, all of a task or none, within their share of the store.
type args struct {
	*step
	clients        *clients
	space          *space
	progress       *progress
	objects        *objects
	restores       *restores
	creates        *creates
	copies         *copies
	up             argsUp
	sets           map[ids.TaskID][]*argSet
	argWait        queue.Queue[*argSet]
	idle           map[ids.TaskID]bool       // tasks that wait in a get
	readaheadQueue queue.Queue[ids.ObjectID] // to be read when nobody asks for anything else
	argBytes       uint64
	activeSets     int
	argsFull       bool // the head of argWait does not fit
}

func newArgs(s *step, cs *clients, sp *space, pr *progress, os *objects, rs *restores, cr *creates, cp *copies, up argsUp) *args {
	return &args{step: s, clients: cs, space: sp, progress: pr, objects: os, restores: rs, creates: cr, copies: cp, up: up,
		sets: make(map[ids.TaskID][]*argSet), idle: make(map[ids.TaskID]bool)}
}

// argsUp tells who is to be served first.
type argsUp interface{ oldestDemand() *demand }

// spilling writes cold objects to spill storage, and asks clients first to let go of what they no longer use.
type spilling struct {
	*step
	clients   *clients
	space     *space
	progress  *progress
	objects   *objects
	spills    int
	collected int64
	spillAt   int64 // not before: clients are collecting

	spillingFiles uint64 // bytes of files that are being spilled

	copying   bool // spill files are being written anew
	copyFails int
	copyAt    int64 // not before
}

// placing serves what waits for memory: from what is free, what can be made free, or a file outside the segment.
type placing struct {
	*step
	clients   *clients
	space     *space
	progress  *progress
	objects   *objects
	demands   *demands
	restores  *restores
	nodes     *nodes
	creates   *creates
	packs     *packs
	copies    *copies
	args      *args
	spilling  *spilling
	fallbacks int
}

// recovery rebuilds the books from the index, and has clients say the rest.
type recovery struct {
	*step
	clients       *clients
	space         *space
	objects       *objects
	creates       *creates
	copies        *copies
	restores      *restores
	inFlightFiles map[uint32]string // fallback files of no record, which an earlier core's reads may still fill
}
