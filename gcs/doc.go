// Package gcs is the control plane: the tables of nodes, homes and named actors, and the services that answer
// questions about them. They lie in key-value buckets of NATS JetStream: in a server in this process, or by configuration in one
// server or a set of servers elsewhere, which the nodes of a cluster share (decision 0019).
//
// # Who owns what
//
// The tables are authoritative; a Core's view of them is a cache fed by watches and
// is rebuilt from them after a crash. Decisions (who owns an actor's name, which home and epoch a node has) are
// compare-and-set writes; what the view says is a hint. Requests are idempotent, and
// those without an answer are stepped again after a restart. A node writes its own row, and repeats it as a heartbeat if others read it. Only
// the core knows when it last heard another node, by the clock of this node.
//
// # What blocks
//
// Only Start, StartServer, Open and Close block. Everything else is a message; writes happen on one goroutine of
// the shell, in order. Nothing here is on the path of a task, an anonymous actor, a put or a get.
//
// # Durability
//
// The embedded server syncs every write before it acknowledges (SyncAlways): NATS
// acknowledges first by default and loses writes that way. The operator of a server elsewhere sets it up.
//
// # Errors
//
// ErrNameTaken and ErrNotFound of package errs for names; ErrComponentFailed if the server cannot be started, with
// its directory in the message, or cannot be reached, with its URL.
package gcs
