package objectstore

import (
	"math"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/objectstore/alloc"
	"mobula/objectstore/record"
	"mobula/objectstore/spill"
	"mobula/wire"
)

// Effect is what the core wants done. Effects of one step are carried out in order.
type Effect interface{ storeEffect() }

// ToClient sends a message. File is not 0 with wire.MapFile: its descriptor goes along.
type ToClient struct {
	Client ids.ClientID
	Msg    wire.Msg
	File   uint32
}

// ToOwner is a message to a job's owner.
type ToOwner struct {
	Job ids.JobID
	Msg OwnerMsg
}

// SpillWrite writes sealed objects to spill storage; the answer is SpillDone.
type SpillWrite struct {
	Job   uint64
	Items []SpillItem
}

// SpillItem is one object to write.
type SpillItem struct {
	ID      ids.ObjectID
	Attempt uint32
	Place   ids.JobID // in whose file it lies
	Extent  wire.Extent
}

// SpillCopy writes objects of spill storage anew; the answer is SpillDone. They stay where they lie until they are removed.
type SpillCopy struct {
	Job     uint64
	Objects []spill.Copy
}

// SpillRead reads a spilled object into an extent; the answer is RestoreDone.
type SpillRead struct {
	Job    uint64
	Loc    spill.Location
	Place  ids.JobID
	Extent wire.Extent
}

// SpillRemove gives spilled copies up.
type SpillRemove struct{ Locs []spill.Location }

// Reserve puts memory behind parts of a job's file; the answer is ReserveDone.
type Reserve struct {
	Job    uint64
	Place  ids.JobID
	Ranges []alloc.Range
	Look   bool // only tell whether there is as much memory
}

// Punch gives memory back. It is done before any later effect.
type Punch struct{ Ranges []alloc.Owned }

// DropSegment removes the file of a job that is over; nothing lies in it. The job gets no other before AllowSegment.
type DropSegment struct{ Place ids.JobID }

// AllowSegment lets a job have a file that was over before.
type AllowSegment struct{ Place ids.JobID }

// CopyObject copies what lies in one job's file into another's, either or both in a fallback file; the answer is RestoreDone.
type CopyObject struct {
	Job    uint64
	From   ids.JobID
	Of     wire.Extent
	Place  ids.JobID
	Extent wire.Extent
}

// Import reads an object from another node into an extent; the answer is RestoreDone. An error that wraps spill.ErrMissing or
// spill.ErrCorrupt says that the node has no intact copy; any other may pass.
type Import struct {
	Job     uint64
	From    ids.Home
	Others  []ids.Home // where the rest may be read if From sends only a part, the best first
	ID      ids.ObjectID
	Attempt uint32
	Place   ids.JobID
	Extent  wire.Extent
	Cold    bool // memory is to be brought for it: a lack of it is an error of CodeSegmentUnavailable
}

// Exported answers Export: where the bytes lie, which stay there until the export ends; or why there are none.
type Exported struct {
	To     ids.Home
	Token  uint64
	ID     ids.ObjectID
	Place  ids.JobID
	Extent wire.Extent
	Err    *errs.Error
}

// CreateFallback makes a file to be mapped in place of segment memory; the answer is FallbackDone.
type CreateFallback struct {
	Job  uint64
	Size uint64
	Last bool // it may use the part of a disk that spilling leaves free
}

// DropFile closes and removes a fallback file.
type DropFile struct {
	File uint32
	Path string
}

// CopyIn writes packed values into a block. It is done before any later effect.
type CopyIn struct {
	Place  ids.JobID
	Extent wire.Extent
	Parts  []Part
}

// Part is the bytes at an offset from the block's start.
type Part struct {
	Off  uint64
	Data []byte
}

// WriteRecord and ClearRecord update the index.
type WriteRecord struct {
	Slot   uint32
	Record record.Record
}

// ClearRecord frees a slot of the index.
type ClearRecord struct{ Slot uint32 }

// Remember keeps an event outside the core until Forget: what a new core steps first after
// a panic, so that no owner has to ask again.
type Remember struct {
	Key   NoteKey
	Event Event
	// Place is the note of an earlier core from which this one was made, and behind which it comes; the zero key: behind all others. A core may be lost
	// before it has stepped all notes, and the next one is to have them in the same order.
	Place NoteKey
}

// Forget drops what was remembered under the key.
type Forget struct{ Key NoteKey }

// NoteKey names a remembered event: by task and attempt, or by number.
type NoteKey struct {
	Task    ids.TaskID
	Attempt uint32
	N       uint64
}

// SetTimer asks for a Tick at the time, in Unix nanoseconds. A later one replaces an earlier one.
type SetTimer struct{ At int64 }

// Log is a line for the node's log, already bounded in rate.
type Log struct {
	Msg string
	Err error
}

// Results of effects, as events.

// SpillDone answers SpillWrite and SpillCopy: a location an item, or an error and nothing written.
type SpillDone struct {
	Job  uint64
	Locs []spill.Location
	Err  error
}

// RestoreDone answers SpillRead, CopyObject and Import.
type RestoreDone struct {
	Job uint64
	Err error
}

// ReserveDone answers Reserve.
type ReserveDone struct {
	Job uint64
	Err error
}

// FallbackDone answers CreateFallback.
type FallbackDone struct {
	Job  uint64
	File uint32 // never 0, never reused within the life of the index
	Path string
	Err  error
}

// Tick says that the time of SetTimer has come.
type Tick struct{}

// Drained says that no spill or restore that an earlier core began is under way, to the core of
// that epoch. Sizes are those of the spill files that there are.
type Drained struct {
	Epoch uint64
	Sizes map[spill.FileKey]uint64
}

// Inspect runs a function on the store's own goroutine: for Stats, List and Why.
type Inspect struct{ Do func(*Core) }

// begin is stepped first: it tells owners and clients that the store is back.
type begin struct {
	drop              []uint32 // slots of records of no use
	inFlightReadsDone bool
}

// Note is a remembered event and its key.
type Note struct {
	Key   NoteKey
	Event Event
}

// heldFirst orders notes: those of pins that are held come first.
func heldFirst(a, b Note) int { return rank(a.Event) - rank(b.Event) }

func rank(ev Event) int {
	if _, ok := ev.(heldArgs); ok {
		return 0
	}
	return 1
}

// RecoverSpill is an event and its effect: it only asks the shell to make spill storage ready, which then answers with Drained.
type RecoverSpill struct{ Live []spill.Location }

// SpillReady says that SpillRemove may be carried out again.
type SpillReady struct{}

// recalled steps a note of an earlier core, which is noted anew if it must be.
type recalled struct{ Note }

// about tells whether an effect replaces or drops a note.
func about(f Effect, k NoteKey) bool {
	switch f := f.(type) {
	case Remember:
		return f.Key == k
	case Forget:
		return f.Key == k
	}
	return false
}

// heldArgs is a PinArgs that was answered before a panic: its pins are taken again, unanswered.
type heldArgs struct {
	PinArgs
	idle bool // its task waits in a get
	left bool // the attempt was abandoned
}

// lentCPU is a task that had lent its CPU before a panic.
type lentCPU struct {
	lenderKey
	job ids.JobID
}

func (ToClient) storeEffect()       {}
func (ToOwner) storeEffect()        {}
func (SpillWrite) storeEffect()     {}
func (SpillCopy) storeEffect()      {}
func (SpillRead) storeEffect()      {}
func (SpillRemove) storeEffect()    {}
func (Reserve) storeEffect()        {}
func (Punch) storeEffect()          {}
func (CreateFallback) storeEffect() {}
func (CopyObject) storeEffect()     {}
func (Import) storeEffect()         {}
func (Exported) storeEffect()       {}
func (DropSegment) storeEffect()    {}
func (AllowSegment) storeEffect()   {}
func (DropFile) storeEffect()       {}
func (CopyIn) storeEffect()         {}
func (WriteRecord) storeEffect()    {}
func (ClearRecord) storeEffect()    {}
func (Remember) storeEffect()       {}
func (Forget) storeEffect()         {}
func (SetTimer) storeEffect()       {}
func (Log) storeEffect()            {}
func (RecoverSpill) storeEffect()   {}
func (SpillReady) storeEffect()     {}

func (SpillDone) storeEvent()    {}
func (RestoreDone) storeEvent()  {}
func (ReserveDone) storeEvent()  {}
func (FallbackDone) storeEvent() {}
func (Tick) storeEvent()         {}
func (Drained) storeEvent()      {}
func (Inspect) storeEvent()      {}
func (begin) storeEvent()        {}
func (lentCPU) storeEvent()      {}
func (RecoverSpill) storeEvent() {}
func (recalled) storeEvent()     {}

func lostError(id ids.ObjectID, why string) *errs.Error {
	return errs.New(errs.CodeObjectLost, "object %v %s", id, why)
}

// locs is a helper for one location.
func locs(l spill.Location) []spill.Location { return []spill.Location{l} }

// freedKey is the note that an object was freed for which gets wait.
func freedKey(id ids.ObjectID) NoteKey {
	return NoteKey{Task: id.Task, Attempt: id.Index, N: math.MaxUint64 - 1}
}

// locatedKey is the note of where else an object is. No other note of a task but freedKey has a number.
func locatedKey(id ids.ObjectID) NoteKey {
	return NoteKey{Task: id.Task, Attempt: id.Index, N: math.MaxUint64}
}
