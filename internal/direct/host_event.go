package direct

import (
	"mobula/internal/errs"
	"mobula/internal/ids"
)

// Incoming is a call, as the actor's process knows it. Who makes one sets the exported fields; the rest belongs to the Host.
type Incoming struct {
	ID      ids.TaskID
	Tries   int32 // retries used
	Group   int
	Payload any

	from    *source
	order   uint64   // among all that came
	no      uint64   // on its channel
	nth     uint64   // of its group there
	outcome *Outcome // of one that is over: what it came to
	incoming
	kept       incoming // after the last step that has ended: what a new core goes on from
	touched    bool
	listed     bool // in the memory, between these
	prev, next *Incoming
}

// incoming is what changes of a call, as a Host knows it. It has no pointers, since it is copied at each step.
type incoming struct {
	ackNo   uint64
	bytes   int64
	said    Said
	running bool
	aside   bool // it waits until its channel's answers are taken
	over    bool // it has an answer
	tell    bool // the owner wants the answer too: whoever called is gone
}

// Kept tells whether a Host knows of the call, or has yet to be told that its answer was taken.
func (in *Incoming) Kept() bool { return in.listed }

// HostEvent is what a Host is told.
type HostEvent interface{ toHost() }

// Linked says that a process may call on a channel.
type Linked struct{ Channel Channel }

// Arrived is the next call of a channel.
type Arrived struct {
	Channel Channel
	Call    *Incoming
}

// Unwanted says that a caller wants a call to end, or that the owner does, whose caller is gone. It is answered all the same; with Force at once. With Unbegun it is
// answered with that if it has not begun, else it goes on.
type Unwanted struct {
	Channel Channel
	No      uint64
	Wish    Wish
	Unbegun *Outcome
}

// Overdue says that a call was interrupted some time ago and still runs. It is answered, and others run in its place.
type Overdue struct{ Call *Incoming }

// Finished is the end of a call that ran; with Panicked it has brought the instance down.
type Finished struct {
	Call     *Incoming
	Outcome  *Outcome
	Bytes    int64 // of the answer
	Holds    bool  // references
	Panicked bool
}

// Acked says that the process at a channel's other end has taken answers, and said to the owner what it had to.
type Acked struct {
	Channel Channel
	UpTo    uint64
}

// Unlinked says that a channel has ended, and was read to its end.
type Unlinked struct{ Channel Channel }

// Stopping says that the instance takes no more calls. What is in the mailbox still runs if it drains.
type Stopping struct{ Drain bool }

// Where is the owner's question about calls that it has adopted, by their numbers on a channel whose other end is gone; one that was not sent has a number beyond
// all. It is answered when the channel was read to its end.
type Where struct {
	Channel Channel
	Numbers []uint64
}

// Dropped says that the owner has no more questions about a channel that has ended.
type Dropped struct{ Channel Channel }

func (Linked) toHost()    {}
func (*Arrived) toHost()  {}
func (Unwanted) toHost()  {}
func (Overdue) toHost()   {}
func (*Finished) toHost() {}
func (Acked) toHost()     {}
func (Unlinked) toHost()  {}
func (Stopping) toHost()  {}
func (Where) toHost()     {}
func (Dropped) toHost()   {}

// HostDo is what a HostEffect asks for.
type HostDo uint8

// What a Host asks for, in order.
const (
	Run       HostDo = iota // Call; before it is written, where the caller can read it, that the calls of its Group on Channel have begun up to the No-th
	Interrupt               // Call, which runs
	Answer                  // to Channel: call No has come to Outcome, or Said; AckNo is the answer's number
	SayLast                 // to Channel: nothing follows
	TellOwner               // call No of Channel, adopted, has come to Outcome, or Said
	NotHere                 // to the owner: call No of Channel never came, and what did is in the mailbox
	Fallen                  // to the owner: the instance was brought down by Call, with Outcome
)

// HostEffect is something that a Host asks for.
type HostEffect struct {
	Do      HostDo
	Call    *Incoming
	Channel Channel
	No      uint64
	AckNo   uint64
	Said    Said
	Holds   bool
	Wish    Wish // of Interrupt
	Outcome *Outcome
}

// tooMany is the error of a call beyond the limit.
func tooMany(limit int) *errs.Error {
	return errs.New(errs.CodePendingCallsLimit, "the actor has %d calls pending, which is its limit: wait for some to end", limit)
}
