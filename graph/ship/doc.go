// Package ship runs the plans of package spec on the cluster. It implements package mobula's executors Processes and Distributed.
//
// A task of a plan becomes a call of one registered function, Func. Its first argument, the payload, names the function
// that the task calls, and says how to make its arguments of the call's other inputs: the results of the task's
// dependencies, then objects with literals that are too large or contain references.
//
// # Two ways
//
// Processes steps the graph's scheduler in the calling goroutine, and submits each task when it may start, to a worker process that
// does nothing else meanwhile. Distributed ships the graph once, to the node's scheduler (package graph/run), and waits for the
// wanted results.
//
// # Who owns what
//
// A run owns the handles of literals, of needed results and of wanted results. When it ends it releases them, and cancels tasks that still
// run. The job's owner has everything else.
//
// # What blocks
//
// A run blocks until the wanted results are there, a task has failed or the context ends; its puts of literals may wait for room
// in the store.
//
// # Errors
//
// Those of spec.Get. A function that is not registered gives a *spec.InvalidError before anything runs. A literal that cannot be encoded
// gives mobula.ErrNotEncodable: from Distributed before anything runs, from Processes when its task should begin.
package ship
