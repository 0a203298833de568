package direct

import "mobula/internal/errs"

// Event is what a Caller is told.
type Event interface{ toCaller() }

// Begin is a call of the actor that the process makes.
type Begin struct{ Call *Call }

// Argument is an argument that a call has waited for; with Err it has failed, and so has the call. With Bytes the call takes so much of the credit, in place of
// what it said when it began.
type Argument struct {
	Call  *Call
	Err   *errs.Error
	Bytes int64
}

// Cancel is the wish that a call should end; with Why it ends with that, and only if it has not begun.
type Cancel struct {
	Call *Call
	Wish Wish
	Why  *errs.Error
}

// Wish is how a call is to end. The cores look at Force alone.
type Wish struct {
	Force     bool // whatever its method does
	Recursive bool // with what it has made
	Insist    bool // by force soon, if it takes no notice
}

// Expired says that the deadline of a call has passed: it ends now, whatever its method does.
type Expired struct{ Call *Call }

// and is both wishes.
func (w Wish) and(x Wish) Wish {
	return Wish{Force: w.Force || x.Force, Recursive: w.Recursive || x.Recursive, Insist: w.Insist || x.Insist}
}

// Opened is the answer to AskWay: a channel to the instance, and how much may be sent on it that was not answered.
type Opened struct {
	Instance Instance
	Channel  Channel
	Credit   int64
}

// GoesByOwner is the other answer to AskWay: there is no channel to this actor from here.
type GoesByOwner struct{}

// NoWay is an answer to AskWay while the actor restarts and calls do not wait for that, or when it is dead.
type NoWay struct {
	Dead bool
	Err  *errs.Error
}

// Over is the node's word on a channel: its instance has ended; or, in answer to AskWord, that only the channel has. It takes effect when the channel was read to
// its end: there may be answers in it.
type Over struct {
	Channel Channel
	Next    Next
	Keeps   bool        // calls that have not begun wait for the next instance
	Begun   []uint64    // of each group, the last call of this channel that has begun; read after the instance was over
	Err     *errs.Error // why, for who is refused
}

// Next is what follows an instance.
type Next uint8

// What follows.
const (
	NextInstance Next = iota
	NextNone          // the actor is dead
	NextSame          // the instance lives, the channel is gone: what was sent on it may begin yet
)

// Answered is a host's answer to a call; with Said its instance has ended, and the node's word follows. The core does not keep it: who tells of many uses one again.
type Answered struct {
	Channel Channel
	No      uint64 // the call's
	AckNo   uint64 // the answer's
	Said    Said
	Outcome *Outcome
	Holds   bool // there are references in it, which the host holds until it is acknowledged: Held says when
}

// Held says that the owner knows of the references in an answer.
type Held struct {
	Channel Channel
	AckNo   uint64
}

// Broke says that a channel was read to its end: the host has said that nothing follows (Last), or is gone.
type Broke struct {
	Channel Channel
	Last    bool
}

// Idle says that a channel was not used for some time.
type Idle struct{ Channel Channel }

// OwnerAnswered is the result of a call that went by the owner.
type OwnerAnswered struct {
	Call    *Call
	Outcome *Outcome
}

// Leaves says that a reference to a call's result is about to leave the process.
type Leaves struct{ Call *Call }

// Released says that the last reference to a call's result in this process has gone.
type Released struct{ Call *Call }

// Adopted is the owner's answer to Adopt.
type Adopted struct{ Call *Call }

// OwnerLost says that the owner was made anew, and knows nothing of channels and of adopted calls that have not ended: it is told.
type OwnerLost struct{}

// Relieve says that this process has more bytes of results that only it has than it may, over all actors. So many of these, the oldest, are given to the owner.
type Relieve struct{ Bytes int64 }

func (Begin) toCaller()         {}
func (Argument) toCaller()      {}
func (Cancel) toCaller()        {}
func (Expired) toCaller()       {}
func (Opened) toCaller()        {}
func (GoesByOwner) toCaller()   {}
func (NoWay) toCaller()         {}
func (Over) toCaller()          {}
func (Held) toCaller()          {}
func (*Answered) toCaller()     {}
func (Broke) toCaller()         {}
func (Idle) toCaller()          {}
func (OwnerAnswered) toCaller() {}
func (Leaves) toCaller()        {}
func (Released) toCaller()      {}
func (Adopted) toCaller()       {}
func (OwnerLost) toCaller()     {}
func (Relieve) toCaller()       {}

// Do is what an Effect asks for.
type Do uint8

// What a Caller asks for. Effects are carried out in order: what goes to the node is written before what follows it.
const (
	AskWay      Do = iota // of the node: a channel to the actor
	AskWord               // of the node: what has become of Channel
	Send                  // Call on Channel as No
	Withdraw              // ask the host to cancel No on Channel; with an Outcome to end it with that, if it has not begun
	Submit                // Call to the owner, as a task
	Revoke                // ask the owner to cancel Call
	Settle                // Call has ended with Outcome: its waiters are told
	Adopt                 // tell the owner of Call: its outcome if it has one, else on which channel it is, or is about to be sent, its order, and the retries that it has used
	Report                // tell the owner the outcome of Call, which it has adopted. From then on, as after Adopt with an outcome, the value may be dropped here and asked for again
	Depart                // a reference to the result of Call may leave
	AckUpTo               // the answers of Channel are taken, up to No
	HangUp                // Channel is needed no more
	TellChannel           // tell the owner, which was made anew, of Channel to Instance
)

// Effect is something that a Caller asks for. It is one struct, so that a call allocates none.
type Effect struct {
	Do       Do
	Call     *Call
	Instance Instance
	Channel  Channel
	No       uint64
	Wish     Wish // of Withdraw and Revoke
	Outcome  *Outcome
}
