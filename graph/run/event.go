package run

import "mobula/wire"

// Event is an input of Core.Step.
type Event interface{ runEvent() }

// Begin starts the graph, or goes on with it in a new core.
type Begin struct{}

// Resolved says that results are there; of a task with several results it has the first.
type Resolved struct{ Of []Result }

// Result is a task's result: inline, stored or an error.
type Result struct {
	Task   int32
	Result *wire.Result
}

// Unneeded says that nobody can ask for wanted results any more; promise n belongs to task n-1.
type Unneeded struct{ Promises []uint32 }

// Refused says that a task could not be submitted.
type Refused struct {
	Task int32
	Err  error
}

// Heaps says how many bytes the node's processes take, without the store. It comes only on a node with a memory
// limit.
type Heaps struct{ Bytes int64 }

// Resized says that there are more or fewer nodes for the graph.
type Resized struct{ Capacity Capacity }

// Seceded says that a task has given its place up to others or, with Back, takes it again.
type Seceded struct {
	Task int32
	Back bool
}

func (Begin) runEvent()    {}
func (Resolved) runEvent() {}
func (Unneeded) runEvent() {}
func (Refused) runEvent()  {}
func (Heaps) runEvent()    {}
func (Resized) runEvent()  {}
func (Seceded) runEvent()  {}

// Effect is an action that the core asks for. Effects are carried out in order.
type Effect interface{ runEffect() }

// Submit gives a task to its owner.
type Submit struct{ Task int32 }

// Release gives up a task's results.
type Release struct{ Task int32 }

// ReleasePart gives up one of a task's results.
type ReleasePart struct{ Task, Part int32 }

// Withdraw cancels a task and gives up its results.
type Withdraw struct{ Task int32 }

// Pass fails tasks that were wanted and not submitted: each by the one before it.
type Pass struct{ Chain []int32 }

// Tell puts an event on the graph's stream.
type Tell struct{ StreamEvent }

// Over ends the graph. Err says why a task of it could not be submitted that somebody needed.
type Over struct{ Err error }

func (Submit) runEffect()      {}
func (Release) runEffect()     {}
func (ReleasePart) runEffect() {}
func (Withdraw) runEffect()    {}
func (Pass) runEffect()        {}
func (Tell) runEffect()        {}
func (Over) runEffect()        {}
