// Package ship runs the plans of package spec on the cluster: it is what package mobula's executors Processes and Distributed do.
//
// A task of a plan becomes a call of one registered function, Func. Its first argument, the payload, names the function
// that the task calls and says how its arguments are made of the call's other inputs: the results of the task's
// dependencies, then objects that hold literals too large, or with references in them.
//
// # Two ways
//
// Processes steps the graph's scheduler here, in the goroutine that asks, and submits each task as it may start, to a worker
// process that does nothing else meanwhile. Distributed ships the graph once, to the node's scheduler (package graph/run), and waits
// for what is wanted.
//
// # Who owns what
//
// A run owns the handles on literals, on results that are needed, and on what is wanted; it gives them back when it ends, and cancels what
// runs still. Everything else is the job's owner's.
//
// # What blocks
//
// A run blocks until what is wanted is there, a task has failed or the context ends; it puts literals, which may wait for room in
// the store.
//
// # Errors
//
// As spec.Get says. Before anything runs: a function that is not registered is a *spec.InvalidError. A literal that cannot be encoded is
// mobula.ErrNotEncodable; Distributed says so before anything runs, Processes where its task is to begin.
package ship
