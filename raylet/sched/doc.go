// Package sched decides which class of tasks of which job gets the next lease on a node.
//
// A lease is a share of the node's resources and one slot of a worker process. An owner pushes tasks over it
// without asking again, so the scheduler works per lease and never per task. Core is a pure state machine:
// Step(now, event) returns effects, without goroutine, clock or I/O. One actor drives it together with the worker
// pool (package raylet).
//
// # Who owns which state
//
// The core owns the node's resources, the table of leases and the wants. Processes belong to the pool: the core
// names a lease in NeedWorker and gets WorkerReady, NoWorker or WorkerGone. Tasks belong to the owners. The core
// can be rebuilt: a new one asks every owner with Resync and grants nothing until all have answered or
// ResyncTimeout has passed.
//
// # Order of service
//
// A task that waits for its CPU after a get (UnblockCPU) comes before any new lease. If actors have taken that CPU
// for life, the task goes on beside them once no other task has a CPU: the actors may be waiting for it. New leases
// go round the jobs that want one, and within a job round its classes. The first class in that order that does not
// fit reserves what it lacks from those behind it, as long as running leases can free enough for it; so a class
// that asks for much is served in the end. A class that waits while others hold leases takes one back with Reclaim
// from the one that holds most: at once if it has none and has just begun to want, else no sooner than Quantum
// after the grant.
//
// # What blocks
//
// Nothing. A lease waits for a worker, a class for resources and a resume for a CPU, each as an entry in a table
// that Explain shows. The wait for a worker has a deadline in the pool; the others end with the leases they wait
// for, or with their job.
//
// # Errors
//
// Infeasible carries CodeInvalid (the options contradict themselves), CodeUnschedulable (the node does not have the resources asked for, or the labels,
// or is not the one that was asked for; it names what was asked and what the node has) or CodeRuntimeSetup (no worker could be started). Revoked carries what ended the worker. Events that
// name an unknown lease or class are stale, not wrong, and are ignored.
package sched
