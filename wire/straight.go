package wire

import (
	"os"

	"mobula/internal/errs"
	"mobula/internal/ids"
)

// Of calls that go straight (decision 0038) processes tell the owner of the job, and it them.

// Wish is how a call is to end.
type Wish struct {
	Force     bool // whatever its method does
	Recursive bool // with what it has made
	Insist    bool // by force soon, if it takes no notice
}

// From a process that calls to the owner of its job.

// AskWay asks how calls get to an actor: Way answers.
type AskWay struct{ Actor ids.ActorID }

// AskWord asks what has become of a channel that has broken: Over answers.
type AskWord struct{ Channel uint64 }

// HangUp says that a channel is needed no more.
type HangUp struct{ Channel uint64 }

// Linked tells an owner that was made anew of a channel which its process has, and says so before Adopt and Holdings. Nothing answers it, unless its
// instance has ended: then Over. What the owner before it has not answered, AskWay and AskWord, is asked again behind it: two answers may come then, and the
// second channel is to be hung up.
type Linked struct {
	Actor    ids.ActorID
	Instance ids.LeaseID
	Channel  uint64
}

// Adopt tells of a call: the process holds a handle on each of its returns from now on, as after Submit. Adopted answers the first one. It is said again when
// what it says changes, and to an owner that was made anew: that may know of the call, by its log, or not.
type Adopt struct {
	Spec    *TaskSpec
	Order   uint64       // among the calls that the process has made of the actor
	Channel uint64       // where it is, or is about to be sent; 0: nowhere
	No      uint64       // there
	Tries   int32        // retries that it has used
	Outcome *CallOutcome // what it came to; nil: it has not ended
}

// CallOutcome is what a call came to: a result for each return, or an error.
type CallOutcome struct {
	Results []Result
	Items   uint32 // of a stream
	Err     *errs.Error
	Ran     *Run // nil: its times were not taken
}

// Run says where a call ran, and when.
type Run struct {
	Worker ids.ClientID
	Lease  ids.LeaseID
	Times  Times
}

// EndedCalls tells, now and then, of calls that have ended without the owner having been told of them: a call that is adopted later is none more. Each is in
// Counts, or among Calls: those whose spec says when they were made, and some that have failed.
type EndedCalls struct {
	Counts []EndedCount
	Calls  []EndedCall
}

// EndedCount counts the calls of one function.
type EndedCount struct {
	Opts                        *TaskOptions // of one of them
	Finished, Failed, Cancelled uint64
	Retried                     uint64 // times that calls were made again, of those among Calls too
}

// EndedCall is one call.
type EndedCall struct {
	Spec  *TaskSpec
	At    int64 // Unix ns
	Tries int32 // retries that it has used
	Err   *errs.Error
	Ran   *Run // nil: its times were not taken
}

// Mark asks the owner of a job to say when it has taken all that the client has said to it before: Marked answers.
type Mark struct {
	Job ids.JobID
	No  uint64
}

// From the owner to a process that calls.

// Marked answers Mark.
type Marked struct {
	Job ids.JobID
	No  uint64
}

// CancelCall asks to end a call of which the owner was told.
type CancelCall struct {
	Task  ids.TaskID
	Actor ids.ActorID
	Wish  Wish
}

// Way answers AskWay. Without Err and ByOwner it is a channel.
type Way struct {
	Actor    ids.ActorID
	ByOwner  bool // calls are to be submitted as tasks
	Dead     bool // with Err: there will be no other way
	Err      *errs.Error
	Instance ids.LeaseID
	Channel  uint64
	Retries  int32        // MaxTaskRetries of the actor
	Groups   []string     // its concurrency groups, by number; the first has no name
	Host     ids.ClientID // whose process has the instance
	Apart    bool         // that is another one: the descriptor of the channel's end travels with the message

	Opened *os.File // not encoded, as in MapFile
}

// Next is what follows an instance.
type Next uint8

// What follows.
const (
	NextInstance Next = iota
	NextNone          // the actor is dead
	NextSame          // the instance lives, the channel is gone
)

// Over is the node's word on a channel.
type Over struct {
	Actor   ids.ActorID
	Channel uint64
	Next    Next
	Keeps   bool        // calls that have not begun wait for the next instance
	Err     *errs.Error // why, for who is refused
}

// Adopted answers Adopt.
type Adopted struct{ Task ids.TaskID }

// From the owner, or the node, to the process of an actor.

// HostChannel gives the process of an actor its end of a channel, whose descriptor travels with the message.
type HostChannel struct {
	Instance ids.LeaseID
	Channel  uint64
	Caller   ids.ClientID

	Opened *os.File // not encoded, as in MapFile
}

// StillThere asks whether an instance lives: Lives answers, or that it has ended was said before.
type StillThere struct {
	Instance ids.LeaseID
	Channel  uint64
}

// Where asks for adopted calls on a channel whose other end is gone: a Told answers each.
type Where struct {
	Instance ids.LeaseID
	Channel  uint64
	Numbers  []uint64
}

// Unwanted asks to end a call whose caller is gone.
type Unwanted struct {
	Instance ids.LeaseID
	Channel  uint64
	No       uint64
	Wish     Wish
}

// Dropped says that the owner has no more questions about a channel that has ended.
type Dropped struct {
	Instance ids.LeaseID
	Channel  uint64
}

// From the process of an actor to the owner.

// Lives answers StillThere.
type Lives struct{ Channel uint64 }

// Told says what an adopted call came to, or how far; or, with NeverCame, that it never came.
type Told struct {
	Channel   uint64
	No        uint64
	NeverCame bool
	Said      Said
	Outcome   *CallOutcome // nil: Said tells
}
