package directory

import (
	"time"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/raylet/owner/actor"
	"mobula/wire"
)

// Name is the name of an actor.
type Name struct{ Namespace, Name string }

func nameOf(o *wire.TaskOptions) Name { return Name{o.Namespace, o.ActorName} }

// Place is where an actor is: Alive on a lease of a worker, Restarting, or Dead with Err. Locating, with Err, says that its calls cannot
// get there from this node.
type Place struct {
	Actor  ids.ActorID
	State  actor.State
	Worker ids.ClientID
	Lease  ids.LeaseID
	Opts   *wire.TaskOptions // of its creation
	Err    *errs.Error
	Ending bool // it lives, and will be dead once its calls and its close hook have ended: its name is being given up

	Restarts int32
}

// Row is a name's row in the control plane's table.
type Row struct {
	Actor ids.ActorID
	Opts  *wire.TaskOptions // Namespace, ActorName, Detached and Func
}

// Event is an input of Core.Step.
type Event interface{ directoryEvent() }

// JobBegan says that a job has an owner here, before anybody else can know of the job.
type JobBegan struct{ Job ids.JobID }

// JobEnded says that a job has no owner any more. It comes after the owner's last message.
type JobEnded struct{ Job ids.JobID }

// Claim asks for a name for an actor of a job. NameClaimed answers.
type Claim struct {
	Job   ids.JobID
	Actor ids.ActorID
	Opts  *wire.TaskOptions // Namespace, ActorName, Detached, GetIfExists
}

// Release gives a name up, since its actor is dead. Without Opts it is the name that the actor has here.
type Release struct {
	Actor ids.ActorID
	Opts  *wire.TaskOptions
	Err   *errs.Error // why it died
}

// Publish says where an actor is; its owner sends it.
type Publish struct{ Place }

// Kill is to reach the owner of another job's actor, which ends it. A claim of the actor's name that comes after this waits until the name is
// free, unless the actor restarts.
type Kill struct {
	Actor   ids.ActorID
	Restart bool
	Stop    bool
}

// Locate asks for an actor of another job. A Place answers, at once and whenever the actor moves, until Done withdraws it.
type Locate struct {
	Job   ids.JobID // the job that asks
	Actor ids.ActorID
	Done  bool
}

// Reconcile checks the names in the table that an earlier life of the node left. All jobs that came back have their owners.
type Reconcile struct{}

// OwnerRestarted says that a job's owner was rebuilt: it is told again which names its actors have.
type OwnerRestarted struct{ Job ids.JobID }

// Rebuild is the first event of a core that follows another: the jobs that have an owner now.
type Rebuild struct{ Jobs []ids.JobID }

// Claimed answers a ClaimRow. Holder is the actor that has the name, if it is taken.
type Claimed struct {
	Claim
	Holder ids.ActorID
	Err    *errs.Error
}

// Freed answers a FreeRow.
type Freed struct {
	FreeRow
	Err   *errs.Error
	Final bool // a retry would not help: the node ends, or has no control plane
}

// Listed answers ListRows.
type Listed struct {
	Rows []Row
	Err  *errs.Error
}

// FreeAgain retries a FreeRow after a failure.
type FreeAgain struct{ FreeRow }

// Inspect runs a function where the core is stepped. It must change nothing.
type Inspect struct{ Do func(*Core) }

func (Inspect) directoryEvent()        {}
func (JobBegan) directoryEvent()       {}
func (JobEnded) directoryEvent()       {}
func (Claim) directoryEvent()          {}
func (Release) directoryEvent()        {}
func (Publish) directoryEvent()        {}
func (Kill) directoryEvent()           {}
func (Locate) directoryEvent()         {}
func (Reconcile) directoryEvent()      {}
func (OwnerRestarted) directoryEvent() {}
func (Rebuild) directoryEvent()        {}
func (Claimed) directoryEvent()        {}
func (Freed) directoryEvent()          {}
func (Listed) directoryEvent()         {}
func (FreeAgain) directoryEvent()      {}

// Effect is an action of the shell.
type Effect interface{ directoryEffect() }

// ToOwner sends a message to the owner of a job. The owner first gets to know the worker of a Place, since it will
// send it messages.
type ToOwner struct {
	Job ids.JobID
	Msg Msg
}

// Msg is a message to an owner: a NameClaimed, NameHeld, Place, Sought, Kill or Restate.
type Msg interface{ toOwner() }

// NameClaimed answers a Claim: the actor has the name if Err is nil and Existing is zero; else Existing has it.
type NameClaimed struct {
	Actor    ids.ActorID
	Existing ids.ActorID
	Err      *errs.Error
}

// NameHeld says that the table has a name for an actor, or may have; Release answers if the actor is dead or not known.
type NameHeld Row

// Sought says that another job looks for an actor that is not known here; Publish answers if it will not come.
type Sought struct{ Actor ids.ActorID }

// Restate asks an owner to repeat what it claims, where its actors are and whom it looks for.
type Restate struct{}

func (NameClaimed) toOwner() {}
func (NameHeld) toOwner()    {}
func (Place) toOwner()       {}
func (Sought) toOwner()      {}
func (Kill) toOwner()        {}
func (Restate) toOwner()     {}

// ClaimRow asks the control plane for a name.
type ClaimRow struct{ Claim }

// FreeRow asks the control plane to free a name, if the actor has it.
type FreeRow struct {
	Name
	Actor ids.ActorID
}

// UpdateRow notes in the table that a named actor is alive. It is a hint for readers of the table, and has no answer.
type UpdateRow struct{ Row }

// ListRows asks for the table.
type ListRows struct{}

// After has an event come back after a time.
type After struct {
	D  time.Duration
	Ev Event
}

// Warn tells the user of a failure.
type Warn struct {
	What string
	Row  FreeRow // zero: no name
	Err  *errs.Error
}

func (ToOwner) directoryEffect()   {}
func (ClaimRow) directoryEffect()  {}
func (FreeRow) directoryEffect()   {}
func (UpdateRow) directoryEffect() {}
func (ListRows) directoryEffect()  {}
func (After) directoryEffect()     {}
func (Warn) directoryEffect()      {}
