package record

import (
	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/raylet/owner/actor"
	"mobula/raylet/owner/task"
	"mobula/wire"
)

// Record is one of the structs below, as a pointer.
type Record interface{ record() }

// Options gives a number to options, which submissions then use.
type Options struct {
	No   uint32
	Opts *wire.TaskOptions
}

// Submit is a submitted task. Spec.Opts is nil where OptsNo names them.
type Submit struct {
	Submission
	Spec *wire.TaskSpec
}

// Submission is what a submission says beside the spec.
type Submission struct {
	OptsNo             uint32      // the number of its options in the log; 0: they stand in the record
	Born               int64       // when it was, Unix ns; 0: an older version wrote the record
	Parent             ids.ActorID // of an actor that escalates: the actor that has created it
	DetachedDescendant bool        // who submitted it belongs to a detached actor
	Elsewhere          bool        // the process that called has it, and not the owner, until a Retry says otherwise or it has ended
}

// Done is the end of a task.
type Done struct {
	State task.State // Finished, or Failed with Done.Err
	Done  wire.Done  // Task, Attempt, Results, Items, Err
}

// Object is an object that no Done has: a put, an early seal, a stream's item. Without a result it is a put, or an item, whose value was freed.
type Object struct {
	ID      ids.ObjectID
	Attempt uint32
	Result  wire.Result

	Elsewhere uint64 // 1 above the home of the node whose store keeps it; 0: the job's own
}

// Retry is an attempt that was charged, or a running task that is being cancelled.
type Retry struct {
	Task      ids.TaskID
	Attempt   uint32
	Tries     uint32
	Errors    uint32 // of its own, where they are counted apart from Tries
	Cancelled bool
	Insist    bool   // the cancel is by force after a grace
	Length    uint32 // of a stream that an attempt came to the end of, and 1; 0: none did
	Elsewhere bool   // as in Submission
}

// Forget names what is forgotten: objects, and tasks with all of their returns, which
// have the index WholeTask.
type Forget struct{ IDs []ids.ObjectID }

// WholeTask as an index names the task itself. No return or put has it.
const WholeTask = ^uint32(0)

// Actor is where an actor stands; the last one holds.
type Actor struct {
	Actor    ids.ActorID
	State    actor.State
	Restarts int32
	Resets   int32
	Lease    ids.LeaseID
	Worker   ids.ClientID
	Named    bool // it has its name
	Alias    ids.ActorID
	Err      *errs.Error
	Stop     bool        // it is to end after its calls, for the reason in Err
	Hurt     *errs.Error // the failure of a child while its constructor runs
}

// Packed says that an inline value lies in the store now.
type Packed struct {
	ID   ids.ObjectID
	Size uint64
}

// Closed says that nobody reads a task's stream any more.
type Closed struct{ Task ids.TaskID }

// Borrower says that a job of another home may hold objects of this one.
type Borrower struct{ Job ids.JobID }

func (*Closed) record()   {}
func (*Borrower) record() {}
func (*Options) record()  {}
func (*Submit) record()   {}
func (*Done) record()     {}
func (*Object) record()   {}
func (*Retry) record()    {}
func (*Forget) record()   {}
func (*Actor) record()    {}
func (*Packed) record()   {}
