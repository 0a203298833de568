package wire

import (
	"mobula/internal/errs"
	"mobula/internal/ids"
)

// Of what calls make and wait for that have come straight: from the process in which they run to the owner, and back.

// Runs says that a call which has come straight to this process makes something of which the owner is told, and says so before that. The owner is to know who has made it.
type Runs struct {
	Task  ids.TaskID
	Actor ids.ActorID // whose call it is
}

// Ran says that a call of which Runs was said runs no more.
type Ran struct{ Task ids.TaskID }

// CancelMade asks to cancel what a task has made, and what that has made: the owner, of what it knows; and from the owner a process that calls, of calls which have gone
// straight and of which the owner was not told.
type CancelMade struct {
	Task ids.TaskID
	Wish Wish
}

// The owner looks for circles of waits. It does not see a wait of a call that went straight, or for one: so it is told.

// Waits says, from the process of an actor, that a call which runs there waits for objects: it needs all, and waits until it has them or is cancelled. It is said of
// waits that take long, and again to an owner that was made anew.
type Waits struct {
	No       uint64 // of the wait, in its process
	Task     ids.TaskID
	Name     string
	Actor    ids.ActorID
	Instance ids.LeaseID
	Group    string
	Needs    []Need
	Round    uint64 // of the question that it answers; 0: of none
}

// Need is an object that is waited for.
type Need struct {
	Object ids.ObjectID
	Call   bool // it is the result of a call that went straight, which the owner may not know: of Actor, in Group
	Name   string
	Actor  ids.ActorID
	Group  string
}

// WaitOver says that a wait is over of which Waits was said.
type WaitOver struct {
	No   uint64
	Task ids.TaskID
}

// StillWaits is the owner's question whether a wait goes on: Waits answers, or WaitOver was said before.
type StillWaits struct {
	No    uint64
	Round uint64
}

// CannotBegin says, from the owner to the process that has made a call, that it can never begin: it is to end with Err, unless it has begun meanwhile.
type CannotBegin struct {
	Task ids.TaskID
	Err  *errs.Error
}
