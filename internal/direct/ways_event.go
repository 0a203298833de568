package direct

import (
	"mobula/internal/errs"
	"mobula/internal/ids"
)

// WaysEvent is what a Ways is told.
type WaysEvent interface{ toWays() }

// Began says that an instance of an actor takes calls, in a process of the node.
type Began struct {
	Actor    ids.ActorID
	Instance Instance
	Host     ids.ClientID
	ByOwner  bool // no channel may lead there
}

// Ended says that an instance has ended, and what follows. That an actor is dead which has no instance it says too.
type Ended struct {
	Actor    ids.ActorID
	Instance Instance // 0: there was none
	Dead     bool     // no other follows
	Keeps    bool     // calls that have not begun wait for the next
	Err      *errs.Error
}

// HostGone says that the process of an instance has ended, after the instance: what it has not said nobody says any more.
type HostGone struct {
	Actor    ids.ActorID
	Instance Instance
}

// ProcessGone says HostGone of all instances that a process has had and whose end was told.
type ProcessGone struct{ Host ids.ClientID }

// Forgotten says that nobody can call a dead actor any more.
type Forgotten struct{ Actor ids.ActorID }

// WayAsked is a process' AskWay. An actor of which nothing was said yet is being made.
type WayAsked struct {
	Client  ids.ClientID
	Actor   ids.ActorID
	ByOwner bool // no channel may lead from there to the actor
	Keeps   bool // while the actor restarts, calls wait
}

// HasChannel says that a process has a channel of a core before this one, to an instance that lives or whose end follows.
type HasChannel struct {
	Client   ids.ClientID
	Actor    ids.ActorID
	Instance Instance
	Host     ids.ClientID
	Channel  Channel
}

// WordAsked is a process' AskWord.
type WordAsked struct{ Channel Channel }

// Lives is a host's answer to AskHost: the instance lives, though the channel has ended.
type Lives struct{ Channel Channel }

// HungUp is a process' HangUp.
type HungUp struct{ Channel Channel }

// Adopting is a process' Adopt: at which number of which channel the call is, or what it came to.
type Adopting struct {
	Client  ids.ClientID
	Call    ids.TaskID
	Actor   ids.ActorID
	Order   uint64  // among the calls that its process has made of the actor
	Channel Channel // 0: it was not sent; one that is not known is of a core before this one, and has ended
	No      uint64
	Retries int32
	Tries   int32
	Outcome *Outcome
}

// CancelAsked says that somebody wants a call to end of which the owner was told, and that is not the owner's to make.
type CancelAsked struct {
	Call ids.TaskID
	Wish Wish
}

// Submitted says that a process has submitted a call as a task.
type Submitted struct {
	Client ids.ClientID
	Call   ids.TaskID
	Actor  ids.ActorID
	Tries  int32 // retries that it has used
}

// Resolved says that a call which the owner knows has its outcome: its process has reported it, or the owner itself has it.
type Resolved struct{ Call ids.TaskID }

// Freed says that nobody can ask for a call's result any more.
type Freed struct{ Call ids.TaskID }

// CallerGone says that a process that calls has ended, and that all was read that it had written.
type CallerGone struct{ Client ids.ClientID }

// Told is a host's TellOwner.
type Told struct {
	Channel Channel
	No      uint64
	Said    Said
	Outcome *Outcome
}

// NeverCame is a host's NotHere.
type NeverCame struct {
	Channel Channel
	No      uint64
}

func (Began) toWays()       {}
func (Ended) toWays()       {}
func (HostGone) toWays()    {}
func (ProcessGone) toWays() {}
func (Forgotten) toWays()   {}
func (HasChannel) toWays()  {}
func (WayAsked) toWays()    {}
func (WordAsked) toWays()   {}
func (Lives) toWays()       {}
func (HungUp) toWays()      {}
func (Adopting) toWays()    {}
func (CancelAsked) toWays() {}
func (Submitted) toWays()   {}
func (Resolved) toWays()    {}
func (Freed) toWays()       {}
func (CallerGone) toWays()  {}
func (Told) toWays()        {}
func (NeverCame) toWays()   {}

// WaysDo is what a WaysEffect asks for.
type WaysDo uint8

// What a Ways asks for, in order.
const (
	Open         WaysDo = iota // tell Host, of Instance, of Channel (Linked), then Client of it (Opened)
	GoByOwner                  // answer Client's question for the way to Actor
	SayNoWay                   // the same: with Dead or Err
	SayOver                    // tell Client of Channel to Actor (Over): Next, Keeps, Err; with the counts, which are read now
	AskHost                    // ask Host, whether Instance lives: Lives follows, or the end of it
	TellAdopted                // Client: its Call is adopted
	AskWhere                   // ask Host for No of Channel
	PassCancel                 // ask Client to end its Call of Actor, by Wish
	AskEnd                     // ask Host to end No of Channel, by Wish: whoever called is gone
	DropChannel                // tell Host that nobody asks for Channel any more
	ResolveCall                // Call has come to Outcome
	MakeCall                   // Call is the owner's from now on: to be made when those that are before it are, Tries retries of it are used
	AnswerCaller               // Client has submitted Call, which is resolved already
)

// WaysEffect is something that a Ways asks for.
type WaysEffect struct {
	Do       WaysDo
	Client   ids.ClientID
	Host     ids.ClientID
	Actor    ids.ActorID
	Instance Instance
	Channel  Channel
	No       uint64
	Call     ids.TaskID
	Tries    int32
	Wish     Wish
	Outcome  *Outcome
	Over     Over
	Dead     bool
	Err      *errs.Error
}
