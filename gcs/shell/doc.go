// Package shell is the control plane's actor: it gives the events to package gcs' core, and makes the calls that it asks for, to a NATS
// server.
//
// # Who owns what
//
// A GCS owns what has to outlive a panic of the core: the embedded server, the connection, the tables, the requests without an answer and
// what the node says of itself. Tables are rows by compare-and-set: KV in buckets of a server, Memory in this process for tests. Other programs
// ask the service mobula-gcs over NATS.
//
// # What blocks
//
// Only Start, StartServer, Open, Call and Close. Everything else is a message; the writes happen on
// one goroutine, in order. Nothing here is on the path of a task, an
// anonymous actor, a put or a get.
//
// # Durability
//
// The embedded server syncs every write before it acknowledges (SyncAlways): NATS
// acknowledges first by default and loses writes that way. The operator of a server elsewhere decides how it is set up.
//
// # Errors
//
// Those of package gcs; ErrComponentFailed where the server cannot be started, with its directory in the message, or is not reached, with
// its URL; ErrShutdown once the component has stopped.
package shell
