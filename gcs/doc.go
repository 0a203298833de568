// Package gcs is the control plane: the tables of nodes, jobs, functions and named
// actors, kept in NATS JetStream key-value buckets, and the services that answer
// questions about them.
//
// # Who owns what
//
// The buckets are authoritative; a Core's view of them is a cache fed by watches and
// is rebuilt from them after a crash. Decisions (who owns an actor's name) are
// compare-and-set writes; what the view says is a hint. Requests are idempotent, and
// those without an answer are stepped again after a restart.
//
// # What blocks
//
// Only StartServer, Open and Close. Everything else is a message; the writes happen on
// one goroutine of the shell, in order. Nothing here is on the path of a task, an
// anonymous actor, a put or a get.
//
// # Durability
//
// The embedded server syncs every write before it acknowledges (SyncAlways): NATS
// acknowledges first by default and loses writes that way.
//
// # Errors
//
// ErrNameTaken and ErrNotFound of package errs for names; ErrComponentFailed where the
// server cannot be started, with its directory in the message.
package gcs
