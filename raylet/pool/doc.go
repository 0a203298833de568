// Package pool keeps, on one node, the worker processes that leases run in.
//
// A worker process belongs to one job and is of one kind: the job's task host (all its tasks that are
// not isolated, a lane a lease), the job's actor host (all its actors that are not isolated; never
// together with tasks), or isolated (one function, used again by the next lease of that function, or
// one actor, used once). Where slots are goroutines of the driver (embedded), the two hosts are
// virtual: always ready, never started or killed. A job whose workers have one lease at a time (JobStarted.Single:
// a language without threads to share) has no hosts: its tasks' workers serve any function.
//
// Core is a pure state machine; package proc beside it starts and watches the processes. One actor
// drives the core together with the scheduler (package raylet).
//
// # Who owns which state
//
// The core owns the table of workers, which lease sits in which, and the leases that wait for one.
// The launcher owns processes, and outlives the core: after a restart Live tells the new
// core of each, and the scheduler's AdoptLease which leases they have.
//
// # The life of a worker
//
// queued -> starting -> ready -> draining -> dead. At most StartConcurrency start at once. One that
// does not register within StartTimeout is killed. A host lives as long as its job; an isolated worker is retired
// after IdleAfter without a lease while there are more than SoftLimit of them, or with its actor.
// Draining takes no new lease, is told to exit when its leases have ended, and is killed Grace
// later. A worker that exits ends its leases by WorkerGone.
//
// # What blocks
//
// Nothing. A lease that waits for a worker is answered by WorkerReady or NoWorker: a start that neither
// registers nor exits is ended by its timeout, and one that fails MaxStartFailures times in a row
// fails all that wait for it.
//
// # Errors
//
// NoWorker carries CodeRuntimeSetup, WorkerGone CodeWorkerCrashed or the reason given with the kill;
// both quote the end of what the process wrote to stderr. Refuse carries CodePermission.
package pool
