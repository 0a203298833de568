package talk

import "mobula/wire"

// Straight is what a call that goes straight is to the actor's process: the Own of its shell.Call. No argument is a reference to an object, and it is no stream.
type Straight interface {
	TaskSpec() *wire.TaskSpec
	Announce() // has the owner know of the call: before a result of it is stored
}

// Answer is the Value of a call's Outcome, by pointer; nil where there is neither a result nor something to keep. Keep holds the references in the results, or in the error,
// until the Answer is not needed any more.
type Answer struct {
	Results []wire.Result
	Keep    any
}
