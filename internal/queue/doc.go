// Package queue is a first-in-first-out queue in a slice that is reused: popped values leave room for new ones.
//
// A Queue belongs to one goroutine. Nothing blocks, and there are no errors; Front and Pop of an empty queue panic, like an index out
// of range. Package inbox passes items between goroutines.
package queue
