// Package run decides how a task graph runs on a node: it has package graph's scheduler, and a line of tasks in front of the job's
// owner. Package run/shell runs it.
//
// A graph is a task of its job, of the function Func, which the node runs in its own process. The driver ships the
// graph once (Request): its shape, the arguments of each task as bytes that this package does not read, and
// references. The wanted results are promises of that task (wire.TaskSpec.Promises): they are references from the
// submit on, before the tasks that make them exist.
//
// # Who owns which state
//
// Core owns the graph.Core and the line of tasks that graph.Core has let go and that are not submitted yet. Ledger owns the outcomes of
// submitted tasks; it outlives the core. The job's owner has the tasks themselves, their results, retries and lineage, as of any task. A
// task's id follows from its number in the graph. So a graph that begins again, after a panic of its core or as another attempt, finds the
// results that were made, and no task runs twice for it.
//
// # One worker
//
// The node is the graph's one worker: results lie in its store, whichever process made them. Of the tasks that graph.Core sends it, the
// first in the graph's order are with the job's owner: few if tasks take long, many if they are short. The rest stay in line here. On a
// node with a memory limit the first in line also waits while its arguments and the expected growth of its process do not fit beside those
// of the running tasks (decision 0011). It waits at most a minute without a result, and not at all if nothing runs.
//
// A task that has seceded counts neither against the slots of root tasks nor as with the owner: others go on beside it.
//
// # What blocks, and errors
//
// Nothing blocks. A request that contradicts itself gives ErrInvalid; a cycle or a missing key gives the error of graph.New. A
// task's error is that of its result, as everywhere; tasks that depend on it fail with it as an argument's error.
package run
