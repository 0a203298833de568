// Package inbox hands things from whoever finds them to one goroutine that takes all there are.
//
// An Inbox owns what has not been taken. Add and Take do not block, there is no bound: who adds bounds what there can be. There are
// no errors.
package inbox
