package sched

import (
	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/wire"
)

// Class numbers a scheduling class within its job: one function with one set of options.
type Class uint32

// ClassKey names a class on the node.
type ClassKey struct {
	Job   ids.JobID
	Class Class
}

// From owners.

// Want says how many more tasks of a class could run beyond the leases held for it; it replaces what
// was said before, and 0 withdraws. An owner sends it when the number changes from or to zero
// or doubles, not for each task.
type Want struct {
	Key     ClassKey
	Opts    *wire.TaskOptions // resources, isolation, name
	Kind    wire.TaskKind     // TaskNormal or TaskActorCreate
	Backlog int
}

// Return gives a lease back, idle.
type Return struct{ Lease ids.LeaseID }

// BlockCPU gives back a lease's CPU while its task waits in a get.
type BlockCPU struct{ Lease ids.LeaseID }

// UnblockCPU asks for the CPU again; answered by Resumed, before any new grant.
type UnblockCPU struct{ Lease ids.LeaseID }

// DropJob ends every lease and want of a job.
type DropJob struct{ Job ids.JobID }

// ActorUp turns the lease of an actor's creation into the actor's lifetime lease: it holds
// the actor's own resources (none by default) instead of the CPU of its creation.
type ActorUp struct{ Lease ids.LeaseID }

// To owners.

// Granted gives a lease on a worker's slot.
type Granted struct {
	Key    ClassKey
	Lease  ids.LeaseID
	Worker ids.ClientID
}

// Reclaim asks the owner to return the lease once what was pushed on it is done, because
// another class or owner waits.
type Reclaim struct{ Lease ids.LeaseID }

// Revoked says that the lease's worker is gone and why; the lease is over.
type Revoked struct {
	Lease  ids.LeaseID
	Worker ids.ClientID
	Err    *errs.Error
}

// Resumed answers UnblockCPU.
type Resumed struct{ Lease ids.LeaseID }

// Infeasible says that this node can never run the class; it names resource, asked and held.
type Infeasible struct {
	Key ClassKey
	Err *errs.Error
}
