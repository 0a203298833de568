// Package heap is a binary heap of values, in which the one that comes before all others is at index 0.
//
// It holds no state of its own: a heap is a slice of its owner's. Nothing blocks, and there are no errors; Pop and
// Replace of an empty heap panic, as an index out of range does.
package heap
