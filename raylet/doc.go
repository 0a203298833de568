// Package raylet joins the scheduler and the worker pool of a node into the one core that the
// actor "raylet" drives.
//
// The two are separate state machines (packages sched and pool) and speak in small messages:
// NeedWorker, ReleaseWorker and AdoptLease one way, WorkerReady, NoWorker, WorkerGone and WorkerDraining the
// other. They share one actor because every lease needs both: one mailbox less on the way of a grant, and
// one restart that rebuilds the two together, so neither can hold what the other has forgotten.
//
// # Events
//
// Core.Step takes, by value, what owners send (package sched: Want, Return, BlockCPU, UnblockCPU, ActorUp,
// DrainWorker, KillWorker, OwnerRestarted, Holdings), what the node sees (package pool: JobStarted,
// JobEnded, Registered, StartFailed, Exited, Disconnected, Stop; package sched: SetResources, SetPaused)
// and its own timers. The memory monitor's verdict is a KillWorker.
//
// # Effects
//
// ToOwner, SendDrain, StartProcess, KillProcess, Terminate, Admit, Refuse and After. The launcher of
// package pool/proc runs the three of processes, and notes who is told to exit.
//
// # What rebuilds it
//
// The core holds nothing that is not held elsewhere too. New is given the jobs (the node's table of
// drivers) and the live processes (the launcher's table); leases and wants come from the
// owners, who answer Resync with Holdings. Lease and worker numbers go on above those given.
//
// # What blocks, and errors
//
// Nothing blocks; packages sched and pool say which waits have which ends, and which errors
// owners see. An event of an unknown type is a fault of the program and panics.
package raylet
