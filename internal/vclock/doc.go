// Package vclock is the clock of a simulation: its time goes from one thing that is to be done to the next.
//
// A Clock belongs to one goroutine, on which it does what is due. Nothing blocks, and there are no errors.
package vclock
