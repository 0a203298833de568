package owner

import (
	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/raylet/owner/actor"
	"mobula/wire"
)

// DirectoryAsk is what an owner says to the directory of named and detached actors, by value.
type DirectoryAsk interface{ directoryAsk() }

func (ClaimName) directoryAsk()    {}
func (ReleaseName) directoryAsk()  {}
func (PublishActor) directoryAsk() {}
func (LocateActor) directoryAsk()  {}
func (KillActor) directoryAsk()    {}
func (CallsLost) directoryAsk()    {}

// DirectoryNews is what the directory says to an owner, by value.
type DirectoryNews interface{ directoryNews() }

func (NameClaimed) directoryNews()   {}
func (ActorAt) directoryNews()       {}
func (NameHeld) directoryNews()      {}
func (KillRequested) directoryNews() {}
func (CallsLost) directoryNews()     {}
func (LocateActor) directoryNews()   {}
func (Restate) directoryNews()       {}

// Messages to the directory.

// ClaimName asks for a name; NameClaimed answers.
type ClaimName struct {
	Actor ids.ActorID
	Opts  *wire.TaskOptions // Namespace, ActorName, Detached, GetIfExists
}

// ReleaseName gives a name back: its actor is dead.
type ReleaseName struct {
	Actor ids.ActorID
	Opts  *wire.TaskOptions
	Err   *errs.Error // why it died
}

// PublishActor says where a named actor is, for owners of other jobs.
type PublishActor struct{ At ActorAt }

// LocateActor asks for an actor of another job; ActorAt answers, at once and whenever the
// actor moves. Done withdraws it. The directory passes it on to the actor's own job where it
// does not know the actor; PublishActor answers if the actor is dead.
type LocateActor struct {
	Actor ids.ActorID
	Done  bool
}

// KillActor asks the owner of another job's actor to end it.
type KillActor struct {
	Actor   ids.ActorID
	Restart bool
	Stop    bool
}

// CallsLost tells the owner of another job's actor that it had calls of this job when its process died.
// The directory passes it on.
type CallsLost struct {
	Actor ids.ActorID
	Lease ids.LeaseID
}

// Messages from the directory.

// KillRequested is a KillActor of another job, or of whoever runs the node.
type KillRequested KillActor

// NameClaimed answers ClaimName: the name is this actor's where Err is nil and Existing is
// zero; Existing is the actor that has it.
type NameClaimed struct {
	Actor    ids.ActorID
	Existing ids.ActorID
	Err      *errs.Error // CodeNameTaken, or why the directory could not answer
}

// NameHeld says that the directory has a name for an actor of this job: from before a restart, of which nobody knows
// whether all was done that the actor's death entails. ReleaseName answers if the actor is dead.
type NameHeld struct {
	Actor ids.ActorID
	Opts  *wire.TaskOptions // Namespace, ActorName
}

// Restate says that the directory has lost what it knew: this owner says again what it claims, where its named actors are, and which actors of other
// jobs it looks for.
type Restate struct{}

// ActorAt is where an actor is: Alive on a lease of a worker, Restarting, or Dead with Err. Locating, with Err, says that it cannot be called: it
// is of a home that the node does not reach, or runs on another node.
type ActorAt struct {
	Actor  ids.ActorID
	State  actor.State
	Worker ids.ClientID
	Lease  ids.LeaseID
	Opts   *wire.TaskOptions // of its creation
	Err    *errs.Error
	Ending bool // it was asked to end, and lives until it has

	Restarts int32
}
