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

// Want says how many more tasks of a class could run beyond the leases held for it; it replaces the last Want, and
// 0 withdraws it. An owner sends it when the number changes from or to zero or doubles, not for each task. The
// scheduler takes one off for each lease it grants. Until it is told zero it assumes that tasks are left, and
// after some time goes on with half the number. A zero for a class that was not wanted goes to a node that stands by: it says what may be wanted there.
type Want struct {
	Key     ClassKey
	Opts    *wire.TaskOptions // resources, labels, isolation, name
	Kind    wire.TaskKind     // TaskNormal or TaskActorCreate
	Backlog int
}

// Return gives a lease back, idle.
type Return struct{ Lease ids.LeaseID }

// BlockCPU gives back a lease's CPU while its task waits in a get.
type BlockCPU struct{ Lease ids.LeaseID }

// UnblockCPU asks for the CPU again; answered by Resumed, before any new grant.
type UnblockCPU struct {
	Lease ids.LeaseID
	Ask   Ask
}

// Ask tells one UnblockCPU of an owner from all others, also from those of a core before the owner's. The zero Ask is none.
type Ask struct {
	Epoch uint64 // of the owner's last OwnerRestarted; 0: there was none
	Nth   uint64 // since then
}

// DropJob ends every lease and want of a job.
type DropJob struct{ Job ids.JobID }

// ActorUp turns the lease of an actor's creation into the actor's lifetime lease: it holds
// the actor's own resources (none by default) instead of the CPU of its creation.
type ActorUp struct{ Lease ids.LeaseID }

// DrainWorker asks to give the lease's worker process no more work and to end it after a grace, because it runs an
// abandoned task. Tasks of other leases finish first.
type DrainWorker struct {
	Lease  ids.LeaseID
	Worker ids.ClientID
	Err    *errs.Error // why
}

// OwnerRestarted says that the job's owner lost its volatile state: the scheduler forgets the job's
// wants and sends Granted again, with Epoch, for every lease that the job holds.
type OwnerRestarted struct {
	Job   ids.JobID
	Epoch uint64
}

// To owners.

// Granted gives a lease on a worker's slot. Up and Blocked are set only when it is sent again, after
// OwnerRestarted.
type Granted struct {
	Key     ClassKey
	Lease   ids.LeaseID
	Worker  ids.ClientID
	Up      bool   // an actor's lifetime lease
	Blocked bool   // its CPU is given back; UnblockCPU asks for it again
	Epoch   uint64 // of the OwnerRestarted that this answers; 0: a new lease
}

// Reclaim asks the owner to return the lease once the tasks pushed over it are done, because another class or
// owner waits.
type Reclaim struct{ Lease ids.LeaseID }

// Revoked says that the lease has ended because its worker is gone, and why.
type Revoked struct {
	Lease  ids.LeaseID
	Worker ids.ClientID
	Err    *errs.Error
	Peak   uint64 // bytes the process had reached, if it was killed for memory (CodeOutOfMemory)
}

// Resumed answers the UnblockCPU with the same Ask. The owner ignores an answer that it does not wait for: it may have given the CPU back since.
type Resumed struct {
	Lease ids.LeaseID
	Ask   Ask
}

// Infeasible says that this node can never run the class; it names what is asked and what the node has. With CodeRuntimeSetup
// it says that no worker could be started. The scheduler forgets the want.
type Infeasible struct {
	Key ClassKey
	Err *errs.Error
}

// Feasible takes an Infeasible back: the node's resources have changed. The owner sends its Want again.
type Feasible struct{ Key ClassKey }

// Unable names nodes that cannot run a class, among those that hold many bytes of its waiting tasks (cluster.Locality): no lease comes from them. The core that
// chooses nodes sends it.
type Unable struct {
	Key   ClassKey
	Nodes []ids.Home
}

// Awaited says how many leases of a class that is to be spread are placed on each node and yet to come. It replaces what was said before. The core that chooses
// nodes sends it.
type Awaited struct {
	Key    ClassKey
	Leases []Placed
}

// Placed is how many leases are placed on a node.
type Placed struct {
	Node ids.Home
	N    int
}

// Further, from owners.

// KillWorker ends a worker process at once; its leases end by Revoked with Err and Peak.
type KillWorker struct {
	Worker ids.ClientID
	Err    *errs.Error
	Peak   uint64 // bytes it had reached, if killed for memory
}

// Holdings answers Resync: every lease the owner holds and every want it has. A want of zero is of a class that the owner was told is Infeasible: it is told
// Feasible where that is over.
type Holdings struct {
	Job       ids.JobID
	Epoch     uint64
	Held      []Held
	Wants     []Want
	Restarted uint64 // the Epoch of the owner's last OwnerRestarted; 0: there was none
}

// Held describes a lease in Holdings.
type Held struct {
	Lease   ids.LeaseID
	Key     ClassKey
	Opts    *wire.TaskOptions
	Kind    wire.TaskKind
	Worker  ids.ClientID
	Up      bool // an actor's lifetime lease
	Blocked bool // its CPU is given back
	Ask     Ask  // of the UnblockCPU that was not answered by Resumed; zero: there is none
}

// Further, to owners.

// Resync asks an owner for its Holdings, after the scheduler lost its tables. Nothing
// is granted until every owner has answered.
type Resync struct{ Epoch uint64 }

// Event is an input of Core.Step, by value: every message above that comes from an owner, and those of event.go.
type Event interface{ schedEvent() }

func (Want) schedEvent()           {}
func (Return) schedEvent()         {}
func (BlockCPU) schedEvent()       {}
func (UnblockCPU) schedEvent()     {}
func (DropJob) schedEvent()        {}
func (ActorUp) schedEvent()        {}
func (DrainWorker) schedEvent()    {}
func (KillWorker) schedEvent()     {}
func (OwnerRestarted) schedEvent() {}
func (Holdings) schedEvent()       {}

// OwnerMsg is a message to an owner, by value. Only messages of this file implement it.
type OwnerMsg interface{ ownerMsg() }

func (Granted) ownerMsg()    {}
func (Reclaim) ownerMsg()    {}
func (Revoked) ownerMsg()    {}
func (Resumed) ownerMsg()    {}
func (Infeasible) ownerMsg() {}
func (Feasible) ownerMsg()   {}
func (Unable) ownerMsg()     {}
func (Awaited) ownerMsg()    {}
func (Resync) ownerMsg()     {}
