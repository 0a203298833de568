// Package object is the state machine of one object as its owner sees it: whether it has a
// value, and where. Bytes, pins and residency are the store's; counts are package owner's.
//
// It holds no state and does nothing else, so nothing blocks; a move that is not in the table is
// told to the caller, who knows whether it is a late message or a fault.
package object
