// Package machine tells in which run of the machine this program runs, so that what lies in a file can be told from what
// an earlier run has left there.
//
// It owns no state. Nothing blocks but for reading /proc; what cannot be read is empty, never an error.
package machine
