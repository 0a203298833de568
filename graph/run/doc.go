// Package run decides how a task graph runs on a node: package graph's scheduler, and before the job's owner a line of tasks. Package
// run/shell runs it.
//
// A graph is a task of its job, of the function Func, which the node runs in its own process. The driver
// ships the graph once (Request): its shape, what each task is to be called with as bytes that
// this package does not read, and references. The results it wants are promises of that task
// (wire.TaskSpec.Promises): references from the moment of the submit, before the tasks that make them are there.
//
// # Who owns which state
//
// Core owns the graph.Core and the line of tasks that were let go and not submitted yet. Ledger owns what has become of what was submitted; it
// outlives the core. The job's owner has the tasks themselves, their results, retries and lineage, as of any task.
// A task's id follows from its number in the graph, so a graph that begins again (its core panicked, its attempt is
// another one) finds what was made: nothing runs twice for it.
//
// # One worker
//
// The node is the graph's one worker: results lie in its store, whichever process made them. Of what the
// graph.Core sends it, the tasks that come first in the graph's order are with the job's owner, few if tasks take
// long, many if they are short; the rest stay in line here. Where the node has a memory limit, the first in line waits too while its
// arguments and what its process will grow by do not fit beside those of the tasks that run (decision 0011). It waits for no longer than a
// minute without a result, and not at all where nothing runs.
//
// A task that has seceded counts neither against the slots of root tasks nor against what is with the owner: others go on
// beside it.
//
// # What blocks, and errors
//
// Nothing. ErrInvalid for a request that contradicts itself; what graph.New says of a cycle or a missing key. A task's error is its
// result's, as everywhere; who depends on it fails with it as an argument's error.
package run
