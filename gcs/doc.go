// Package gcs decides for the control plane: the tables of nodes, homes and named actors, and the answers to questions about them. Package
// gcs/shell carries out what it decides. The tables lie in key-value buckets of NATS JetStream: of a server in this process, or, by configuration, of one
// server or a set of them elsewhere, which the nodes of a cluster share (decision 0019).
//
// # Who owns what
//
// The tables are authoritative; a Core's view of them is a cache fed by watches and
// is rebuilt from them after a crash. Decisions (who owns an actor's name, which home and epoch a node has) are
// compare-and-set writes; what the view says is a hint. Requests are idempotent, and
// those without an answer are stepped again after a restart. A node writes its own row. If others read it, its heartbeats
// are written too: by the servers of a cluster, which it tells, or else by the node itself, in its row. Only the core knows when it last heard another node, by the clock of this node.
// A node that ends in order removes its row. Of nodes whose lives were ended the judges keep the last 100 rows, for a day. A day after a program's node has gone they
// remove its row in the table of homes too.
//
// # What blocks, and errors
//
// Nothing. ErrNameTaken and ErrNotFound of package errs for names; for homes those of internal/home/register.
package gcs
