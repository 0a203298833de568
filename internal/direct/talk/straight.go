package talk

import "mobula/wire"

// Straight is what a call that goes straight is to the actor's process: the Own of its shell.Call. The owner knows one that is a stream.
type Straight interface {
	TaskSpec() *wire.TaskSpec
	Arguments() []wire.ArgValue // of the arguments that are references, in order: a stored one is still to be read, and its caller holds it until the call has ended
	Announce() error            // has the owner know of the call: before a result of it is stored
}

// Answer is the Value of a call's Outcome, by pointer; nil where there is neither a result nor something to keep or to tell. Keep holds the references in the results, or in
// the error, until the Answer is not needed any more.
type Answer struct {
	Results []wire.Result
	Items   uint32 // of a stream, that its process has sent to the owner
	Keep    any
	Ran     *wire.Run // of a call whose spec says when it was made; nil: its times were not taken
}
