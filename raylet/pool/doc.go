// Package pool keeps, on one node, the worker processes that leases run in.
//
// A worker process belongs to one job and is of one kind: the job's task host (all its tasks that are
// not isolated, a lane a lease), the job's actor host (all its actors that are not isolated; never
// together with tasks; one more for each name that actors give, for as long as it has any), or isolated (one function, used again by the next lease of that function, or
// one actor, used once). Where slots are goroutines of the driver (embedded), the two hosts are
// virtual: always ready, never started or killed. Workers that have one lease at a time (Program.Single:
// a language without threads to share) are no hosts: those of tasks serve any function of theirs.
//
// A job has a program for each language that its functions are of (JobStarted.Programs); a lease is for a worker of its
// function's language. The first worker of the driver's own language is started ahead of need, those of others when they are wanted.
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
// after IdleAfter without a lease while there are more than SoftLimit of them, or with its actor; one of tasks
// too, when it says that they left it with much memory (Worn).
// Draining takes no new lease, is told to exit when its leases have ended, and is killed Grace
// later. A worker that exits ends its leases by WorkerGone.
//
// # What blocks
//
// Nothing. A lease that waits for a worker is answered by WorkerReady or NoWorker: a start that neither
// registers nor exits is ended by its timeout, and one that fails MaxStartFailures times in a row, or is
// killed MaxStartKills times, fails all that wait for it.
//
// # Errors
//
// NoWorker carries CodeRuntimeSetup, or CodeUnknownFunction where the job has no program of the function's language; WorkerGone
// CodeWorkerCrashed or the reason given with the kill. NoWorker and WorkerGone quote the end of what the process wrote to stderr. Refuse
// carries CodePermission.
package pool
