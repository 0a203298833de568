// Package raylet joins the scheduler and the worker pool of a node into the one core that the
// actor "raylet" drives.
//
// The two are separate state machines (packages sched and pool), which exchange small messages: NeedWorker,
// ReleaseWorker and AdoptLease one way, WorkerReady, NoWorker, WorkerGone and WorkerDraining the other. They share
// one actor because every lease needs both. So a grant passes one mailbox less, and a restart rebuilds both
// together: neither can hold what the other has forgotten.
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
// ToOwner, SendDrain, StartProcess, KillProcess, Terminate, Admit, Refuse and After. The launcher of package
// pool/proc carries out the three about processes, and notes which workers are told to exit.
//
// # What rebuilds it
//
// Everything that the core holds is held elsewhere too. New gets the jobs (from the node's table of drivers) and
// the live processes (from the launcher's table); leases and wants come from the owners, which answer Resync with
// Holdings. Lease and worker numbers go on above those given out.
//
// # What blocks, and errors
//
// Nothing blocks. Packages sched and pool say how each wait ends, and which errors owners see. An event of an
// unknown type is a bug in the program and panics.
package raylet
