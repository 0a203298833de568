package objectstore

import (
	"mobula/internal/ids"
	"mobula/internal/queue"
	"mobula/objectstore/alloc"
	"mobula/objectstore/spill"
	"mobula/wire"
)

// object is a sealed object, or a block of packed values. Its bytes are in memory
// (resident: in the segment or in a fallback file), in spill storage, or both.
type object struct {
	id      ids.ObjectID
	attempt uint32
	slot    uint32 // in the index
	size    uint64 // of the data
	meta    []byte
	job     ids.JobID             // in whose file it lies, or would: whose process made it, or, of a copy, whose processes read it
	of      *object               // of a copy: what it is one of
	copies  map[ids.JobID]*object // for the processes of other jobs

	block   alloc.Block // resident and file 0
	file    uint32
	exports uint32 // pins of other nodes
	path    string

	loc    spill.Location // spilled
	inFile int            // its place in spillFile.objs
	absent bool           // spilled, to a target that the node does not have in this life

	elsewhere []ids.Home // other nodes that have it, the best first

	pins       []pin // of clients, by get
	argPins    int   // of admitted argument sets
	argActive  int   // of those, the ones whose task is not idle
	argCharged uint64
	copying    int // copies that are being made of it
	resident   bool
	spilled    bool
	quarantine bool // from before a restart; some client may still read it
	draining   bool // an earlier core's read may still be filling a block for it
	gone       bool // no reference is left; goes when pins, spill and restore let it
	noted      bool // a new core learns that it was freed, since gets wait for it
	spilling   bool
	dead       bool // destroyed
	counted    bool // in Core.pinnedBytes
	restore    *demand
	filling    *demand // a restore that was cancelled while it was read: its block is written to still
	mark       uint64  // Core.mark of the last count that met it

	list       *lru // that it is on, if any
	prev, next *object

	values []value        // of a block
	live   int            // values that are not freed or still pinned
	parked []ids.ObjectID // values freed while the block as a whole was needed

	orphaned []ids.ObjectID // ids that were its own, or its values', and are not any more: it is in Core.orphans
}

// pin is one client's pins on an object or on one value of a block.
type pin struct {
	client ids.ClientID
	id     ids.ObjectID // of the object, or of the value
	sub    uint32
	n      uint32
	merged bool // of an orphan: falls with the pins of the object that took its id
}

// value is one packed value within a block.
type value struct {
	off, size     uint32
	metaOff, mLen uint32 // within the block's meta
	gone          bool
}

// ref finds an object by id: the object itself, or one value of a block.
type ref struct {
	o   *object
	sub uint32
}

func (o *object) pinned() bool {
	return len(o.pins) > 0 || o.argPins > 0 || o.quarantine || o.copying > 0 || o.exports > 0
}

// footprint is what the object takes, or would take, in the segment.
func (o *object) footprint() uint64 {
	if o.resident && o.file == 0 {
		return o.block.Size
	}
	return alloc.Rounded(o.size)
}

// extent is where the bytes of r lie; r.o is resident.
func (r ref) extent() wire.Extent {
	o, e := r.o, r.whole()
	if o.values != nil {
		v := o.values[r.sub]
		e.Off, e.Size = e.Off+uint64(v.off), uint64(v.size)
	}
	return e
}

// whole is where the object, or all of the block, lies.
func (r ref) whole() wire.Extent {
	e := wire.Extent{File: r.o.file, Off: r.o.block.Off, Size: r.o.size}
	if r.o.file != 0 {
		e.Off = 0
	}
	return e
}

func (r ref) size() uint64 {
	if r.o.values != nil {
		return uint64(r.o.values[r.sub].size)
	}
	return r.o.size
}

func (r ref) meta() []byte {
	if r.o.values != nil {
		v := r.o.values[r.sub]
		return r.o.meta[v.metaOff : v.metaOff+v.mLen : v.metaOff+v.mLen]
	}
	return r.o.meta
}

// addPin takes n pins for a client.
func (o *object) addPin(c ids.ClientID, id ids.ObjectID, sub, n uint32) {
	for i := range o.pins {
		if p := &o.pins[i]; p.client == c && p.sub == sub {
			p.n += n
			return
		}
	}
	o.pins = append(o.pins, pin{client: c, id: id, sub: sub, n: n})
}

// dropPins takes n pins of a client away, at most those there are, and says how many.
func (o *object) dropPins(c ids.ClientID, sub, n uint32) uint32 {
	for i := range o.pins {
		p := &o.pins[i]
		if p.client != c || p.sub != sub || p.merged {
			continue
		}
		n = min(n, p.n)
		if p.n -= n; p.n == 0 {
			o.pins[i] = o.pins[len(o.pins)-1]
			o.pins = o.pins[:len(o.pins)-1]
		}
		return n
	}
	return 0
}

// pinsOf counts a client's pins.
func (o *object) pinsOf(c ids.ClientID, sub uint32) uint32 {
	for _, p := range o.pins {
		if p.client == c && p.sub == sub {
			return p.n
		}
	}
	return 0
}

// argSet is the stored arguments of one attempt: pinned all or none.
type argSet struct {
	req      PinArgs
	objs     []ref          // while admitted, what its worker reads
	names    []ids.ObjectID // of objs
	partial  bool           // of a set of before a restart: not all that it was given is there still
	orphans  []*object      // what else it may have been given before a restart, under ids that were freed or made again since
	admitted bool           // its objects are pinned, or will be when restored
	missing  int            // arguments that are not in memory yet
	answered bool
	idle     bool // admitted, and not counted: its task waits in a get, or the attempt was abandoned
	left     bool // the attempt was abandoned
}

// demand asks for memory: a create, a restore or a pack.
type demand struct {
	lane          lane
	stage         stage
	ticket        uint64 // order of arrival
	need          uint64 // bytes
	since         int64  // when it was found to be stuck at the head of its lane; 0: it is not
	block         alloc.Block
	file          uint32
	node          ids.Home // that it is imported from
	path          string
	exact         bool // its reservation was tried again without the step
	cold          bool // whoever writes it will bring the memory
	reserveFailed bool // its reservation failed, and it waited for what is backed already
	held          bool // a reservation for another job is under way where it could lie

	takingFromOthers bool  // warm memory was given back for its reservation
	takeRetryAt      int64 // when that may be tried again

	// A create.
	job       ids.JobID // the client's
	client    ids.ClientID
	req       uint64
	id        ids.ObjectID
	attempt   uint32
	task      ids.TaskID
	cancelled bool
	imports   bool // its object is being read from node
	tries     uint8

	// A restore.
	o       *object
	gets    []getter
	sets    []*argSet // one entry an argument
	from    *object   // that a copy is being made from in memory
	rescues bool      // from is the last copy there is: the restore goes on whether somebody waits or not, unless the object was let go

	twinFailed bool // its bytes are to come from another node, though they are in memory here

	// A pack.
	pack *packing
}

// getter waits for a restore.
type getter struct {
	client ids.ClientID
	job    ids.JobID // whose owner asked
	id     ids.ObjectID
	sub    uint32
	note   uint64
	refs   []ids.ObjectID
}

// laneQueue is one lane. Demands that were withdrawn or moved stay in it until they reach the head.
type laneQueue struct{ queue.Queue[*demand] }

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
	left   bool // its client is gone: the owner of the object says whether it is sealed
}

// lenderKey names a task in a process.
type lenderKey struct {
	task   ids.TaskID
	client ids.ClientID
}

// lender is a task that has given its CPU to others while a create of it waits.
type lender struct {
	lenderKey
	job     ids.JobID // whose owner knows the task
	note    uint64
	ready   bool            // its owner was told that it can go on
	answers []*wire.Created // which it gets when it has a CPU again
}

// exportKey names an export: the node that asked, and its number for it.
type exportKey struct {
	to    ids.Home
	token uint64
}

// export is an object that another node reads, or will when it is restored.
type export struct {
	Export
	r    ref
	note uint64
}

// packing is a block to be: values that wait for room.
type packing struct {
	job     ids.JobID
	values  []PackValue
	dropped map[ids.ObjectID]bool // freed while they waited
	d       *demand
}

// fullDiskState is how the wait for others to let go fares.
type fullDiskState struct {
	from    int64 // since when there was no room and nothing was let go; 0: not so
	yielded int64 // when a task was last asked for its CPU
	asked   int64 // when owners were last asked to let go
	fileAt  int64 // no file outside the segment is tried before: one could not be made
	fileErr error // why; nil: the last one was made
}

// reservation is memory on its way: to a demand, or ahead of any (d is nil).
type reservation struct {
	d      *demand
	owner  alloc.Owner
	ranges []alloc.Range
}

// oldClient is a client of before the restart that has not said what it holds.
type oldClient struct {
	slot uint32
	pid  int32
}

// inFlightRead is a block that an earlier core's read may be filling, for an object that has its
// spilled copy.
type inFlightRead struct {
	o     *object
	block alloc.Block
}

// readRetry is a restore that pauses before its next try. It keeps its extent and has a job, so that it ends as any
// other does, but takes no place among the reads: those of other objects may well work.
type readRetry struct {
	job uint64
	d   *demand
	at  int64
}

// recentPeak is the most that was held lately: in this span of time or in the one before. Each is half of WarmIdle.
type recentPeak struct {
	now, before uint64
	until       int64 // the end of this span
}

// spillJob is one write under way.
type spillJob struct {
	objs    []*object
	bytes   uint64
	outside bool // of files outside the segment
}

// collectState tells how often clients were asked to collect garbage, the last thing that is tried before more is in fallback files than the disk budget, or a
// demand ends with CodeStoreFull: what fills the fallback files may be handles that no program can reach any more.
type collectState struct {
	asks int   // since a file was let go
	at   int64 // of the last one
	// ticket is that of the demand they were asked for last: it has waited long enough; those after it have not.
	ticket uint64
}

// lru is a list of objects, least recently used first.
type lru struct {
	head, tail *object
	bytes      uint64 // sum of footprints
	n          int
}

func (g *grant) extent() wire.Extent {
	if g.file != 0 {
		return wire.Extent{File: g.file, Size: g.size}
	}
	return wire.Extent{Off: g.block.Off, Size: g.size}
}

func (x *export) key() exportKey { return exportKey{x.To, x.Token} }

// busy tells whether a block is needed as a whole, whatever becomes of its values.
func (o *object) busy() bool {
	return o.argPins > 0 || len(o.copies) > 0 || o.copying > 0 || o.exports > 0 || o.quarantine || o.restore != nil || o.spilling || o.draining
}

// lane is a queue of demands for memory.
type lane uint8

const (
	laneCreate lane = iota // creates and packs
	laneGet                // restores that a get waits for
	laneArgs               // restores that only arguments wait for
	laneExport             // restores that other nodes wait for
	lanes
)

// stage is how far a demand has come.
type stage uint8

const (
	stageWaiting   stage = iota // for room
	stageReserving              // has its block, memory is being put behind it
	stageReading                // a restore under way
	stageFallback               // a file is being made in place of a block
	stageDone
)
