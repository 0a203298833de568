// Package heap is a binary heap of values; the first one is at index 0.
//
// It holds no state: a heap is a slice of the caller. Nothing blocks, and there are no errors; Pop and Replace of
// an empty heap panic, like an index out of range.
package heap
