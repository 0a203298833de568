package talk

import (
	"mobula/internal/direct"
	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/wire"
)

// local is a message that goes over no socket.
type local struct{}

// Kind is none that a frame can have.
func (local) Kind() wire.Kind { return 0 }

func (local) talks() {}

// Is tells whether a message is one of this package: others go over no socket either.
func Is(m wire.Msg) bool {
	_, is := m.(interface{ talks() })
	return is
}

// From a process that calls to the owner of its job.

// AskWay asks how calls get to an actor: Way answers.
type AskWay struct {
	local
	Actor ids.ActorID
}

// AskWord asks what has become of a channel that has broken: Over answers.
type AskWord struct {
	local
	Channel direct.Channel
}

// HangUp says that a channel is needed no more.
type HangUp struct {
	local
	Channel direct.Channel
}

// Linked tells an owner that was made anew of a channel which its process has, and says so before Adopt and wire.Holdings. Nothing answers it, unless its
// instance has ended: then Over. What the owner before it has not answered, AskWay and AskWord, is asked again behind it: two answers may come then, and the
// second channel is to be hung up.
type Linked struct {
	local
	Actor    ids.ActorID
	Instance direct.Instance
	Channel  direct.Channel
}

// Adopt tells of a call: the process holds a handle on each of its returns from now on, as after wire.Submit. Adopted answers the first one. It is said again when
// what it says changes, and to an owner that was made anew: that may know of the call, by its log, or not.
type Adopt struct {
	local
	Spec    *wire.TaskSpec
	Order   uint64         // among the calls that the process has made of the actor
	Channel direct.Channel // where it is, or is about to be sent; 0: nowhere
	No      uint64         // there
	Tries   int32          // retries that it has used
	Outcome *Outcome       // what it came to; nil: it has not ended
}

// Outcome is what a call came to: a result for each return, or an error.
type Outcome struct {
	Results []wire.Result
	Items   uint32 // of a stream
	Err     *errs.Error
	Ran     *Run // nil: its times were not taken
}

// Ended tells, now and then, of calls that have ended without the owner having been told of them: a call that is adopted later is none more. Each is in Counts, or
// among Calls: those whose spec says when they were made, and some that have failed.
type Ended struct {
	local
	Counts []EndedCount
	Calls  []EndedCall
}

// EndedCount counts the calls of one function.
type EndedCount struct {
	Opts                        *wire.TaskOptions // of one of them
	Finished, Failed, Cancelled uint64
	Retried                     uint64 // times that calls were made again, of those among Calls too
}

// EndedCall is one call.
type EndedCall struct {
	Spec  *wire.TaskSpec
	At    int64 // Unix ns
	Tries int32 // retries that it has used
	Err   *errs.Error
	Ran   *Run // nil: its times were not taken
}

// From the owner to a process that calls.

// Cancel asks to end a call of which the owner was told.
type Cancel struct {
	local
	Task  ids.TaskID
	Actor ids.ActorID
	Wish  direct.Wish
}

// Way answers AskWay. Without Err and ByOwner it is a channel.
type Way struct {
	local
	Actor    ids.ActorID
	ByOwner  bool // calls are to be submitted as tasks
	Dead     bool // with Err: there will be no other way
	Err      *errs.Error
	Instance direct.Instance
	Channel  direct.Channel
	Retries  int32    // MaxTaskRetries of the actor
	Groups   []string // its concurrency groups, by number; the first has no name
}

// Over is the node's word on a channel.
type Over struct {
	local
	Actor ids.ActorID
	direct.Over
}

// Adopted answers Adopt.
type Adopted struct {
	local
	Task ids.TaskID
}

// From the owner to the process of an actor.

// StillThere asks whether an instance lives: Lives answers, or that it has ended was said before.
type StillThere struct {
	local
	Instance direct.Instance
	Channel  direct.Channel
}

// Where asks for adopted calls on a channel whose other end is gone: a Told answers each.
type Where struct {
	local
	Instance direct.Instance
	Channel  direct.Channel
	Numbers  []uint64
}

// Unwanted asks to end a call whose caller is gone.
type Unwanted struct {
	local
	Instance direct.Instance
	direct.Unwanted
}

// Dropped says that the owner has no more questions about a channel that has ended.
type Dropped struct {
	local
	Instance direct.Instance
	Channel  direct.Channel
}

// From the process of an actor to the owner.

// Lives answers StillThere.
type Lives struct {
	local
	Channel direct.Channel
}

// Told says what an adopted call came to, or how far; or, with NeverCame, that it never came.
type Told struct {
	local
	Channel   direct.Channel
	No        uint64
	NeverCame bool
	Said      direct.Said
	Outcome   *Outcome // nil: Said tells
}

// Of what calls make that have come straight: from the process in which they run to the owner.

// Runs says that a call which has come straight to this process makes something of which the owner is told, and says so before that. The owner is to know who has made it.
type Runs struct {
	local
	Task  ids.TaskID
	Actor ids.ActorID // whose call it is
}

// Ran says that a call of which Runs was said runs no more.
type Ran struct {
	local
	Task ids.TaskID
}

// CancelMade asks to cancel what a task has made, and what that has made: the owner, of what it knows; and from the owner a process that calls, of calls which have gone
// straight and of which the owner was not told.
type CancelMade struct {
	local
	Task ids.TaskID
	Wish direct.Wish
}
