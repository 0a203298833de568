// Package member decides what the end of a client of the node leads to: when everyone is told that it is gone, and when nothing of it is read any more.
//
// # Who owns what
//
// A Core owns where one client stands, from when it is let in until both are told, once each and in this order. What was told a session of the node knows:
// a new core does not tell it again.
//
// # What blocks
//
// Nothing: the core is pure. Its shell is in internal/node.
//
// # Errors
//
// None.
package member
