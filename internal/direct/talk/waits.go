package talk

import (
	"mobula/internal/direct"
	"mobula/internal/errs"
	"mobula/internal/ids"
)

// This file is how the owner hears of waits that it does not see: a call that went straight waits, or what is waited for went straight. It looks for circles.

// Waits says, from the process of an actor, that a call which runs there waits for objects: it needs all, and waits until it has them or is cancelled. It is said of
// waits that take long, and again to an owner that was made anew.
type Waits struct {
	local
	No       uint64 // of the wait, in its process
	Task     ids.TaskID
	Name     string
	Actor    ids.ActorID
	Instance direct.Instance
	Group    string
	For      []Need
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
	local
	No   uint64
	Task ids.TaskID
}

// StillWaits is the owner's question whether a wait goes on: Waits answers, or WaitOver was said before.
type StillWaits struct {
	local
	No    uint64
	Round uint64
}

// CannotBegin says, from the owner to the process that has made a call, that it can never begin: it is to end with Err, unless it has begun meanwhile.
type CannotBegin struct {
	local
	Task ids.TaskID
	Err  *errs.Error
}
