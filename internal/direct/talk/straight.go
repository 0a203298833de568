package talk

import (
	"mobula/internal/ids"
	"mobula/wire"
)

// Straight is what a call that goes straight is to the actor's process: the Own of its shell.Call. No argument is a reference to an object, and it is no stream.
type Straight interface {
	TaskSpec() *wire.TaskSpec
	Announce() // has the owner know of the call: before a result of it is stored
}

// Answer is the Value of a call's Outcome, by pointer; nil where there is neither a result nor something to keep or to tell. Keep holds the references in the results, or in
// the error, until the Answer is not needed any more.
type Answer struct {
	Results []wire.Result
	Keep    any
	Ran     *Ran // of a call whose spec says when it was made; nil: its times were not taken
}

// Ran says where a call ran, and when.
type Ran struct {
	Worker ids.ClientID
	Lease  ids.LeaseID
	Times  wire.Times
}
