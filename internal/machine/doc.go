// Package machine tells on which machine, in which run of it and as which process this program runs, so that what lies in a file can be told
// from what another machine or an earlier run has left there. Nothing blocks but for reading /proc.
package machine
