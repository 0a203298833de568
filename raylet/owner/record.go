package owner

import (
	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/raylet/owner/actor"
	"mobula/raylet/owner/task"
	"mobula/wire"
)

// The records of the owner log. Each has a number, given in the order of events, so that they
// may lie in any order. A record whose position was freed may be missing when the log is read,
// or not: what is forgotten is told by a ForgetRecord, which is needed for as long as records
// appended before it may come back.

// Record is one of the structs below, as a pointer.
type Record interface{ record() }

// OptionsRecord gives a number to options, which submissions then use.
type OptionsRecord struct {
	No   uint32
	Opts *wire.TaskOptions
}

// SubmitRecord is a submitted task. Spec.Opts is nil where OptsNo names them.
type SubmitRecord struct {
	OptsNo uint32
	Spec   *wire.TaskSpec
}

// DoneRecord is the end of a task.
type DoneRecord struct {
	State task.State // Finished, or Failed with Done.Err
	Done  wire.Done  // Task, Attempt, Results, Items, Err
}

// ObjectRecord is an object that no DoneRecord has: a put, an early seal, a stream's item.
type ObjectRecord struct {
	ID      ids.ObjectID
	Attempt uint32
	Result  wire.Result
}

// RetryRecord is an attempt that was charged, or a running task that is being cancelled.
type RetryRecord struct {
	Task      ids.TaskID
	Attempt   uint32
	Tries     uint32
	Cancelled bool
}

// ForgetRecord names what is forgotten: objects, and tasks with all of their returns, which
// have the index wholeTask.
type ForgetRecord struct{ IDs []ids.ObjectID }

// wholeTask as an index names the task itself. No return or put has it.
const wholeTask = ^uint32(0)

// ActorRecord is where an actor stands; the last one holds.
type ActorRecord struct {
	Actor    ids.ActorID
	State    actor.State
	Restarts int32
	Lease    ids.LeaseID
	Worker   ids.ClientID
	Named    bool // it has its name
	Alias    ids.ActorID
	Err      *errs.Error
}

// PackedRecord says that an inline value lies in the store now.
type PackedRecord struct {
	ID   ids.ObjectID
	Size uint64
}

// ClosedRecord says that nobody reads a task's stream any more.
type ClosedRecord struct{ Task ids.TaskID }

func (*ClosedRecord) record()  {}
func (*OptionsRecord) record() {}
func (*SubmitRecord) record()  {}
func (*DoneRecord) record()    {}
func (*ObjectRecord) record()  {}
func (*RetryRecord) record()   {}
func (*ForgetRecord) record()  {}
func (*ActorRecord) record()   {}
func (*PackedRecord) record()  {}
