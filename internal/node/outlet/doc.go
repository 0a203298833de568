// Package outlet is the way from a node to one client: in this process (Local), or over a connection (Socket).
//
// An outlet owns what is queued for its client, in order, and nothing else. Push, Flush and Close do not block: of a client that reads
// nothing until its backlog is full the rest waits as the messages that they are (docs/decisions/0013), and a goroutine of the outlet's own
// sends it as the client reads. An error of a send ends the connection, and who reads from it learns so; the outlet itself gives none.
package outlet
