// Package model is the control plane's tables as a pure function: how long a heartbeat takes to be written, what all of them cost in bytes, and when the end of a
// life is known everywhere, for simulations of thousands of nodes in virtual time.
//
// # What is a model
//
// The cores are those of production: package gcs on every server, with its judge, and on every node, which tells a heartbeat each second; and
// gcs.Heartbeats from the nodes to the servers, gcs.Told and gcs.Alive from the servers to the nodes. What is around them is a model, rule by rule
// that of package gcs/shell on NATS: a node's call goes to the server that it is connected to, which reads the node's home and writes the row; its
// heartbeats go there too, and the server writes all that it has heard in one row a second; all writes go through the server that leads the tables,
// and count when they are synced, on more than half of three servers; each server watches the tables, and tells its nodes of changes. What a server's
// processor, disk and network take for that are Costs. A test of several nodes holds the times and the bytes against those of real nodes.
//
// Left out: elections, since no server ends here; snapshots for nodes that join; packets lost, which TCP repeats; NATS' own pings.
//
// # Who owns what
//
// A Tables owns rows, servers, nodes and the clock. The same Config and the same calls give the same run.
//
// # What blocks, and errors
//
// Nothing, and none.
package model
