// Package link is what a node says to the other nodes of its cluster: a Box for each, in which messages wait in the order in which they go, and the outlet
// to a client of another node, which goes by that node's Box.
//
// A Box owns the queue of what is not handed to the transport yet (package remote/shell, which keeps it until the other node has it). Push and Flush never
// block; what the transport has no room for is sent by a goroutine of the Box's own. Await blocks while that is so, until its context ends: it is for who
// brings messages from somewhere that can wait, as a worker's connection can.
//
// A message that cannot be encoded is dropped and reported (Config.Dropped): it is the fault of a program on this node, and the messages behind it go on.
package link
