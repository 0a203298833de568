package sched

import (
	"time"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/wire"
)

// Slot says in what kind of worker process a lease runs.
type Slot uint8

// The kinds of slot.
const (
	SlotTask  Slot = iota + 1 // the job's shared task process, a lane for each lease
	SlotActor                 // the job's shared actor process
	SlotOwn                   // a process of its own; reused for the same function, never for another actor
)

// String names the slot as Explain and logs show it.
func (s Slot) String() string {
	switch s {
	case SlotTask:
		return "task host"
	case SlotActor:
		return "actor host"
	case SlotOwn:
		return "isolated"
	}
	return "no slot"
}

// From the pool.

// WorkerReady answers NeedWorker.
type WorkerReady struct {
	Lease  ids.LeaseID
	Worker ids.ClientID
}

// NoWorker answers NeedWorker if no worker could be started.
type NoWorker struct {
	Lease ids.LeaseID
	Err   *errs.Error
}

// WorkerGone ends the leases of a worker.
type WorkerGone struct {
	Worker ids.ClientID
	Leases []ids.LeaseID
	Err    *errs.Error
	Peak   uint64
}

// WorkerDraining asks for the leases of a worker that should end.
type WorkerDraining struct{ Leases []ids.LeaseID }

// From the node.

// SetResources replaces what the node has; classes are checked again. Amounts are as in wire.Resource.
type SetResources struct{ Total []wire.Resource }

// SetPaused stops new leases while any lease is running, because memory is short. One at a time is still granted,
// so work goes on.
type SetPaused struct{ On bool }

// Tick is a timer of the core's own, asked for by After.
type Tick struct{}

func (WorkerReady) schedEvent()    {}
func (NoWorker) schedEvent()       {}
func (WorkerGone) schedEvent()     {}
func (WorkerDraining) schedEvent() {}
func (SetResources) schedEvent()   {}
func (SetPaused) schedEvent()      {}
func (Tick) schedEvent()           {}

// Effect is an action that Step asks for.
type Effect interface{ schedEffect() }

// ToOwner is a message to a job's owner.
type ToOwner struct {
	Job     ids.JobID
	Msg     OwnerMsg
	Opening uint64 // pool.JobStarted's; package raylet sets it. The node drops the message if the job was opened again since
}

// NeedWorker asks the pool for a slot for a lease.
type NeedWorker struct {
	Lease   ids.LeaseID
	Job     ids.JobID
	Slot    Slot
	Func    string
	Process string // of SlotActor: the name of the shared process; empty: the job's default one
	Actor   bool   // an isolated actor: a fresh process, not used again
	Memory  int64  // bytes asked for as the resource "memory"; 0: unknown
}

// ReleaseWorker tells the pool that the lease has ended, or no longer wants a slot.
type ReleaseWorker struct{ Lease ids.LeaseID }

// AdoptLease tells the pool of a lease from before the restart.
type AdoptLease struct {
	NeedWorker
	Worker ids.ClientID
}

// After asks for Ev once D has passed.
type After struct {
	D  time.Duration
	Ev Event
}

func (ToOwner) schedEffect()       {}
func (NeedWorker) schedEffect()    {}
func (ReleaseWorker) schedEffect() {}
func (AdoptLease) schedEffect()    {}
func (After) schedEffect()         {}
