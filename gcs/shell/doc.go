// Package shell is the control plane's actor: it gives the events to package gcs' core, and makes the calls that it asks for, to a NATS
// server.
//
// # Who owns what
//
// A GCS owns what has to outlive a panic of the core: the embedded server, the connection, the tables, the requests without an answer and
// what the node says of itself. Tables are rows by compare-and-set: KV in buckets of a server, Served by a service in front of them, Memory in this
// process for tests. Other programs ask the service mobula-gcs over NATS.
//
// # In a cluster
//
// A server of a cluster (Config.Listen) listens for nodes and for the other servers, with TLS and certificates on both sides (package trust/credentials).
// It runs clustered from its first start, alone too; when there are three or five, the tables get as many copies (grow). Each server's core judges by the heartbeats
// which lives are over, and ends them in the table of homes. What the tables say of nodes goes out by Config.Heard, Fenced and Left.
//
// Any other node (Config.Live) may say two things to NATS: requests on subjects that have its home in them, mobula.gcs.from.HOME, and subscriptions
// to its answers, mobula.gcs.to.HOME, and to what the servers tell of changes, mobula.gcs.feed. NATS checks that by the certificate (door). No subject
// of JetStream is among them, not even to read (decision 0026). Its calls go to the service (desk), which checks by
// gcs.Refuses that rows are of the asking home and its life is not over, and makes the compare-and-set. Its watch is the feed of the server to which it is
// connected: a copy of the rows, then the changes, numbered; whoever misses one, or changes servers, takes the rows again and tells what differs.
// A server's own core watches by the feed too (carried), so that each server has one watch of each table.
//
// Heartbeats go to the server that a node is connected to, which writes those that it has heard in one row a second (gathering, decision 0029). The feed tells them as
// a few numbers each, together, and the less often the more nodes there are (gcs.Told).
//
// The tables of a cluster may be in NATS servers that its operator runs (Config.Servers without Live). Then each node reaches them by itself, with the rights
// that the URL has there; a control-plane server of the cluster (Judges) has the authority's table too, judges, and hears accusations.
//
// # What blocks
//
// Only Start, StartServer, Open, Call and Close. Everything else is a message; the writes to a table happen on
// one goroutine, in order. Nothing here is on the path of a task, an
// anonymous actor, a put or a get. In a cluster a call waits up to half a minute for a server that answers, and Start for a leader.
//
// # Durability
//
// The embedded server syncs every write before it acknowledges (SyncAlways): NATS
// acknowledges first by default and loses writes that way. The operator of a server elsewhere decides how it is set up.
//
// # Errors
//
// Those of package gcs; ErrComponentFailed where the server cannot be started, with its directory in the message, or is not reached, with
// its URL; ErrPermission for a row of another home; gcs.ErrFenced for a life that is over; ErrShutdown once the component has stopped.
package shell
