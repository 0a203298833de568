// Package sim runs a graph's real Core over virtual workers, in virtual time.
//
// It is a discrete-event simulator without randomness but its seed: the same configuration gives the
// same run. A worker has threads, a store and one link each way; results have the sizes and tasks
// the durations that a Workload tells; every message between the core and a worker takes Latency.
// What it measures are bytes in stores, bytes moved and the time until everything wanted is there. It
// is for comparing policies and for driving the core through faults, not for predicting a cluster.
//
// # Who owns which state
//
// A run owns everything and has one goroutine, the caller's. Nothing blocks. A worker's share of a
// run knows what is in its store, which the core only believes.
//
// # The model
//
// A copy occupies its receiver's memory from the moment its bytes begin to flow, a result from the
// moment its task ends, both until the worker hears Free. A link carries one copy at a time. A
// worker begins, of the tasks whose inputs it has, the one of the lowest rank.
//
// # Errors
//
// Run fails where the core does something a worker cannot do (a task runs without its inputs, a fetch
// from where nothing is), or stands still with work left.
package sim
