// Package machine tells on which machine, in which run of it and as which process this program runs, so that what lies in
// a file can be told from what another machine or an earlier run has left there.
//
// It owns no state. Nothing blocks but for reading /proc; what cannot be read is empty, never an error.
package machine
