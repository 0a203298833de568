// Package pool keeps the worker processes of a node, in which leases run.
//
// A worker process belongs to one job and is of one of three kinds. The job's task host runs all its tasks that are not isolated, with a lane for
// each lease. The job's actor host has all its actors that are not isolated, never together with tasks; each process name that actors give has a
// further host, as long as it has actors. An isolated worker runs one function, and is used again by the next lease of that function, or has one
// actor, and is used once. If slots are goroutines of the driver (embedded), the two hosts are virtual: always ready, never started or killed.
// Workers that have one lease at a time (Program.Single: a language without threads to share) are not hosts: those for tasks serve any function.
//
// A job has a program for each language of its functions (JobStarted.Programs); a lease is for a worker of its function's language.
// The first worker of the driver's own language is started ahead of need, those of other languages on demand.
//
// Core is a pure state machine; package proc beside it starts and watches the processes. One actor
// drives the core together with the scheduler (package raylet).
//
// # Who owns which state
//
// The core owns the table of workers, which lease sits in which, and the leases that wait for one.
// The launcher owns processes, and outlives the core. After a restart Live tells the new core of each process, and
// the scheduler's AdoptLease tells which leases they have.
//
// # The life of a worker
//
// queued -> starting -> ready -> draining -> dead. At most StartConcurrency start at once. A worker that does not
// register within StartTimeout is killed. A host lives as long as its job. An isolated worker is retired after
// IdleAfter without a lease while there are more than SoftLimit of them, or with its actor. A worker for tasks is
// also retired when it reports that tasks left it with much memory (Worn). A draining worker takes no new lease,
// is told to exit when its leases have ended, and is killed Grace later. With its job a worker without a lease is
// told to exit too, and terminated 100 ms later if it has not; one with a lease is terminated at once. Either is killed Grace after that. If a worker exits, WorkerGone ends its
// leases.
//
// # What blocks
//
// Nothing. A lease that waits for a worker is answered by WorkerReady or NoWorker: a start that neither registers
// nor exits ends by its timeout. If starts fail MaxStartFailures times in a row, or are killed MaxStartKills
// times, all leases that wait for them fail.
//
// # Errors
//
// NoWorker carries CodeRuntimeSetup, or CodeUnknownFunction if the job has no program for the function's language. WorkerGone carries
// CodeWorkerCrashed, or the reason given with the kill. NoWorker and WorkerGone quote the end of what the process wrote to stderr.
// Refuse carries CodePermission for a stranger, CodeDisconnected for a worker that registers when it is to end, and the reason that
// Registered gave for one that cannot be used.
package pool
