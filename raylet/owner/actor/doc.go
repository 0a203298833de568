// Package actor is the state machine of one actor as its owner sees it, from the claim of
// its name to its death. The records and the calls are package owner's.
//
// It holds no state and does nothing else, so nothing blocks; a move that is not in the table is
// told to the caller, who knows whether it is a late message or a fault.
package actor
