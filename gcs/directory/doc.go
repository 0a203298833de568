// Package directory says where named actors are: which actor has a name, where it runs, which jobs want to hear of it, and who waits
// for a name that is being given up.
//
// # Who owns what
//
// The control plane's table of actors (package gcs) owns the names: a name is whose row is there, by compare-and-set. The owner of an actor's job
// owns whether the actor lives and where. The Core has a copy of both for this node's jobs, and owns only who watches and who waits. A new core asks for
// all of it again (Rebuild): the table says which names there are, and each owner says what it claims, what it has and whom it looks for. A name
// whose actor its owner does not know, or whose job is gone, is freed: its actor died, and the node was killed before the row was deleted.
//
// An actor of another home is not here to be found: who asks for it is told so (Place in state Locating, with an error), never that it is dead.
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
