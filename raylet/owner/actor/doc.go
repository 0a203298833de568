// Package actor is the state machine of one actor as its owner sees it, from the claim of
// its name to its death. The records and the calls are package owner's.
package actor
