// Package lease is the state machine of one lease as the owner that uses it sees it. What a
// lease costs and who may have it is the scheduler's; the tasks on it are package owner's.
//
// It holds no state and does nothing else, so nothing blocks; a move that is not in the table is
// told to the caller, who knows whether it is a late message or a fault.
package lease
