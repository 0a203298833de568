package objectstore

import (
	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/wire"
)

// Event is what the store's core steps on.
type Event interface{ storeEvent() }

// From clients, through the node's router.

// FromClient carries *wire.Create, *wire.Abort, *wire.Unpin or *wire.Holdings.
type FromClient struct {
	Client ids.ClientID
	Msg    wire.Msg
}

// ClientJoined makes a client known; its PID's exit is reported as ClientGone.
type ClientJoined struct {
	Client ids.ClientID
	PID    int32
	Job    ids.JobID // whose file it has; what lies in others it reads as copies
}

// ClientGone drops the client's pins and waiting creates. What it was writing the owners of the objects are asked about, who have heard of its end before.
type ClientGone struct{ Client ids.ClientID }

// From owners. Job says whose owner gets the answer.

// SealObject makes a granted extent an immutable object.
type SealObject struct {
	Client  ids.ClientID // who wrote it
	ID      ids.ObjectID
	Attempt uint32
	Size    uint64 // at most what was granted
	Meta    []byte
}

// DropAttempt frees a granted or sealed extent of a losing attempt; where a client is named, only what that one was granted: the attempt may have begun anew
// elsewhere.
type DropAttempt struct {
	ID      ids.ObjectID
	Attempt uint32
	Client  ids.ClientID // 0: whoever makes it
}

// Pack moves inline values that are over their budget into segment blocks. The answer
// is Packed for each; until then the owner keeps the value. Best effort: no room, no move.
type Pack struct {
	Job    ids.JobID
	Values []PackValue
}

// PackValue is one value to pack.
type PackValue struct {
	ID    ids.ObjectID
	Value wire.Value
}

// PinForGet pins an object for a client (restoring it first if it is spilled) and answers
// the client directly with wire.Resolved{Fetch: true}; a lost object answers the owner that asked with Lost,
// and the owner answers the client.
type PinForGet struct {
	Client ids.ClientID
	Job    ids.JobID // whose owner asks; 0: the object's
	ID     ids.ObjectID
	Refs   []ids.ObjectID // what the value contains; goes into Resolved.Result.Value.Refs
}

// UnpinForGet withdraws a PinForGet that has not been answered.
type UnpinForGet struct {
	Client ids.ClientID
	ID     ids.ObjectID
}

// PinArgs pins the stored arguments of one attempt for the worker that will run it, all or
// none, restoring what is spilled; it waits for the 70 % rule. Answer: ArgsPinned or Lost.
type PinArgs struct {
	Job     ids.JobID
	Task    ids.TaskID
	Attempt uint32
	Worker  ids.ClientID
	IDs     []ids.ObjectID
	Ask     uint64 // another for each PinArgs of the attempt after an UnpinArgs: answers carry it, since extents of pins that fell are stale
}

// ReadAhead is advice: a task that runs soon has these stored arguments. It is not answered.
type ReadAhead struct{ IDs []ids.ObjectID }

// UnpinArgs drops the pins of an attempt, or withdraws a PinArgs that waits.
type UnpinArgs struct {
	Task    ids.TaskID
	Attempt uint32
}

// AbandonArgs says that the owner has given an attempt up that may still run: its arguments leave the 70 % count, since nobody knows when
// it ends, and stay pinned until UnpinArgs or its worker's end. DropJob says it of all the job's attempts.
type AbandonArgs struct {
	Task    ids.TaskID
	Attempt uint32
}

// KeepArgs drops the pins of all of a job's attempts but of those that it names, and withdraws what waits: its owner was
// restarted, and knows of no others.
type KeepArgs struct {
	Job      ids.JobID
	Attempts []UnpinArgs
}

// ArgsIdle says that the task waits in a get (its arguments leave the 70 % count, and nobody waits
// for it to let go of them) or runs again.
type ArgsIdle struct {
	Task ids.TaskID
	Idle bool
}

// GoOn answers CreateReady: the task has a CPU again, or needs none.
type GoOn struct {
	Task   ids.TaskID
	Client ids.ClientID
}

// Free drops objects: no reference is left. Pins keep the bytes until they fall.
type Free struct{ IDs []ids.ObjectID }

// ListObjects asks what the store has of a job, since its owner was restarted. The answer is an Inventory with the number of the question.
type ListObjects struct {
	Job ids.JobID
	Ask uint64
}

// DropJob frees every object of a job. Pins keep the bytes until they fall, those of arguments too.
type DropJob struct{ Job ids.JobID }

// JobOpened says that a job of another node is open on this one, be it again: its end here is past, if there was one. Processes of it that join late, after
// its end, do not say so.
type JobOpened struct{ Job ids.JobID }

// About other nodes, and from them.

// Located says which other nodes have an intact copy of an object, the best first; it replaces what was said before. The object's owner
// says it. An object that is not here becomes known by it, and is imported when somebody asks for it. Of one that is here the memory may be
// used again without a write. With no nodes it says that the copy here is the one that counts; if there is none the answer is Lost.
type Located struct {
	ID      ids.ObjectID
	Attempt uint32
	Size    uint64
	Meta    []byte
	On      []ids.Home
}

// Export pins an object for another node, which is to read its bytes, restoring it first if it is spilled. The answer is Exported, also
// when it is asked again. The pin falls with ExportDone.
type Export struct {
	To      ids.Home
	Token   uint64 // To's own number for it, never used again
	ID      ids.ObjectID
	Attempt uint32
}

// ExportDone says that nobody reads for the other node any more: it has what it asked for, wants it no more, or is gone.
type ExportDone struct {
	To    ids.Home
	Token uint64
}

// NodeGone drops the copies of another node.
type NodeGone struct{ Node ids.Home }

// To owners.

// ArgsPinned answers PinArgs: one extent an id, in order.
type ArgsPinned struct {
	Task    ids.TaskID
	Attempt uint32
	Ask     uint64
	Values  []PinnedValue
}

// PinnedValue is a pinned object.
type PinnedValue struct {
	ID     ids.ObjectID
	Meta   []byte
	Extent wire.Extent
}

// ArgsWait says that a PinArgs waits for room (the 70 % rule or a restore), for Explain; ArgsPinned
// Lost or ArgsRefused follows. Sending it is optional.
type ArgsWait struct {
	Task    ids.TaskID
	Attempt uint32
	Ask     uint64
}

// CreateWaits says that a create waits, as the spill directories are full: of a running task, in whose place others are to run, since they may let go of objects.
// Without a task it tells an owner that has objects here to let go of what it keeps for nobody.
type CreateWaits struct {
	Task   ids.TaskID
	Client ids.ClientID
}

// CreateReady says that such a task can go on, once it has a CPU again: until GoOn answers its creates are not. It is said again when the owner asks
// what the store has.
type CreateReady struct {
	Task   ids.TaskID
	Client ids.ClientID
}

// Lost says that the store has no intact copy: a spill file gone, a checksum failed, or the
// object was never sealed. The store has forgotten it. Task and Client say which request failed (either may be zero).
type Lost struct {
	ID      ids.ObjectID
	Task    ids.TaskID
	Attempt uint32
	Ask     uint64 // of the PinArgs, with Task
	Client  ids.ClientID
	Copy    uint32 // of which attempt at the object there is no copy; 0: not said
	Err     *errs.Error

	Unsealed []Unsealed // extents granted for it and not sealed here, though the owner may have logged a seal
}

// Unsealed is an extent that a client was given to write an attempt's object into.
type Unsealed struct {
	Client  ids.ClientID
	Attempt uint32
}

// ArgsRefused ends a PinArgs: CodeStoreFull, its objects are more than can be in memory together;
// CodeOutOfDisk or CodeSegmentUnavailable, the machine has no room for them. They are kept.
type ArgsRefused struct {
	Task    ids.TaskID
	Attempt uint32
	Ask     uint64
	Err     *errs.Error
}

// Packed says that a value now lies in the store under its id.
type Packed struct {
	ID   ids.ObjectID
	Size uint64
}

// Imported says that an object was imported from another node: there is a copy here now. It says too that one is here and stays, where the owner says that it is nowhere else.
type Imported struct {
	ID      ids.ObjectID
	Attempt uint32
}

// Evicted says that the copy of an imported object was dropped, since its memory was needed. It is imported again when somebody asks for it.
type Evicted struct{ ID ids.ObjectID }

// Inventory is sent to each owner after the store was rebuilt, and answers ListObjects: every object of the job that the store knows. When a client is gone it
// is sent with Left alone, after the owner has heard the last of the client.
type Inventory struct {
	Job     ids.JobID
	Objects []SealedInfo
	Asked   bool // it answers ListObjects, or has Left alone
	Left    []Left

	Ask      uint64 // of the ListObjects that it answers; 0: none
	Unsealed []Left // of such an answer: extents of clients that are there, who may have said that they are sealed
}

// Left is an extent that a client was given. Of one that is gone, SealObject or DropAttempt answers it: the client may have said that it is sealed.
type Left struct {
	ID      ids.ObjectID
	Attempt uint32
	Client  ids.ClientID
}

// SealedInfo is one sealed object.
type SealedInfo struct {
	ID      ids.ObjectID
	Attempt uint32
	Size    uint64
	Meta    []byte

	Elsewhere bool // there is no copy here: the store was told of those on other nodes
}

// OwnerMsg is a message to a job's owner, by value. Nothing but the messages of this file implements it.
type OwnerMsg interface{ ownerMsg() }

func (ArgsPinned) ownerMsg()  {}
func (ArgsWait) ownerMsg()    {}
func (ArgsRefused) ownerMsg() {}
func (CreateWaits) ownerMsg() {}
func (CreateReady) ownerMsg() {}
func (Lost) ownerMsg()        {}
func (Packed) ownerMsg()      {}
func (Inventory) ownerMsg()   {}
func (Imported) ownerMsg()    {}
func (Evicted) ownerMsg()     {}

func (FromClient) storeEvent()   {}
func (ClientJoined) storeEvent() {}
func (ClientGone) storeEvent()   {}
func (SealObject) storeEvent()   {}
func (DropAttempt) storeEvent()  {}
func (Pack) storeEvent()         {}
func (PinForGet) storeEvent()    {}
func (UnpinForGet) storeEvent()  {}
func (PinArgs) storeEvent()      {}
func (ReadAhead) storeEvent()    {}
func (UnpinArgs) storeEvent()    {}
func (AbandonArgs) storeEvent()  {}
func (KeepArgs) storeEvent()     {}
func (ArgsIdle) storeEvent()     {}
func (GoOn) storeEvent()         {}
func (Free) storeEvent()         {}
func (ListObjects) storeEvent()  {}
func (DropJob) storeEvent()      {}
func (JobOpened) storeEvent()    {}
func (Located) storeEvent()      {}
func (Export) storeEvent()       {}
func (ExportDone) storeEvent()   {}
func (NodeGone) storeEvent()     {}

// Vital tells of an event that a core must step, since nobody says it again to the next one: that somebody is gone, or a job over.
func Vital(ev Event) bool {
	switch ev.(type) {
	case ClientGone, NodeGone, DropJob, JobOpened:
		return true
	}
	return false
}
