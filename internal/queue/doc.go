// Package queue is a first-in-first-out queue in a slice that is used again: what was taken off leaves room for what is to come.
//
// A Queue belongs to one goroutine. Nothing blocks, and there are no errors; Front and Pop of an empty queue panic, as an index out of
// range does. What crosses goroutines is package inbox's.
package queue
