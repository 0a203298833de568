// Package directory knows where named actors are: which actor has a name, where it runs, which jobs watch it, and who waits for a
// name that is being given up, from when its actor is asked to end.
//
// # Who owns what
//
// The control plane's table of actors (package gcs) owns the names: a compare-and-set decides which actor has a name. The owner of an actor's job
// knows whether the actor lives and where. The Core has a copy of both for this node's jobs, and owns only who watches and who waits. A new core asks
// for all of it again (Rebuild): the table gives the names, and each owner repeats what it claims, what it has and whom it looks for. A name is freed
// if its actor's owner does not know the actor, or if the job is gone: the actor died, and the node was killed before the row was deleted.
//
// An actor of another home cannot be found here: whoever asks for it is told so (Place in state Locating, with an error), and never that it is
// dead.
//
// # What blocks
//
// Nothing: the core is pure. Its shell is in internal/node.
//
// # Errors
//
// ErrNameTaken of package errs for a name that another actor has, ErrActorDied for an actor whose job has ended, ErrActorUnavailable for one of another
// home.
package directory
