// Package sim runs a graph's real Core over virtual workers, in virtual time.
//
// It is a discrete-event simulator. Its only randomness is its seed: the same configuration gives the same run. A
// worker has threads, a store and a link in each direction. A Workload gives the sizes of results and the
// durations of tasks; every message between the core and a worker takes Latency. The simulator measures bytes in
// stores, bytes moved and the time until everything wanted is there. It is for comparing policies and for driving
// the core through faults, not for predicting a cluster.
//
// # Who owns which state
//
// A run owns everything and has one goroutine, the caller's. Nothing blocks. Each virtual worker knows what is
// really in its store; the core only has its own view.
//
// # The model
//
// A copy occupies its receiver's memory from the moment its bytes begin to flow, a result from the
// moment its task ends, both until the worker hears Free. A link carries one copy at a time. Of the tasks whose
// inputs it has, a worker begins the one with the lowest rank.
//
// # Errors
//
// Run fails if the core asks for something that a worker cannot do (a task without its inputs, a fetch of a result
// that is not there), or if it stands still with work left.
package sim
