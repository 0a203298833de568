// Package direct decides how calls of actors go straight: from the process that calls into the mailbox of the actor, and the answer back, without the job's
// owner on the way (decision 0038). It has three cores: Caller, one in each process for each actor that it calls; Host, one for each instance of an actor; and Ways, the
// owner's part, one for each job. Package shell drives the first two, and package wired carries a channel between two processes. What is said
// between processes that call, those of actors and the owner is messages of package wire. Calls go so within a node's process, and between processes where
// MOBULA_STRAIGHT_CHANNELS=1 is in the node's environment.
//
// # Who owns what
//
// Caller owns the calls that its process makes of the actor until they have ended, and their results until a reference leaves the process: the order of each caller's calls, which
// way each goes, what becomes of those whose actor has ended under them, and who is told of a reference that leaves. Host owns the mailbox: how many calls
// are pending, which have begun, and each answer until its caller has taken it. Ways owns which process has which channel, and the calls that it has adopted, from
// the death of their process on. Where an actor's instance is, and whether another follows, is the affair of the rest of the job's owner.
//
// # Channels
//
// A channel leads from one process to one instance of an actor, and is in order. It is never mended: when it breaks, the node is asked what has become of
// the instance. Its calls are numbered from 1. The host counts the calls that it begins, for each concurrency group, where the caller can read it after
// the host's process is gone: in one process the core itself, between two a page of memory that both have.
//
// # When a core panics
//
// A step of a Caller or a Host changes nothing until it has ended: then what it has touched is written down, on the calls and in the memory of the core. A new core is
// made of these. Where two cores panic on one event, Fail ends the calls without one. A Ways goes with its owner, which is made anew as a whole, with another Ways that
// knows no channel: each process tells its Callers (OwnerLost), which say again which they have, what they had asked, and what is adopted and under way.
//
// # What blocks
//
// Nothing: the cores are pure. A Caller holds back what has no credit, and a Host what the process that asked does not take the answers of.
//
// # Errors
//
// ErrActorDied, ErrActorUnavailable, ErrPendingCallsLimit, ErrCancelled and ErrDeadline, each of one call.
package direct
