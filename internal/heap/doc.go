// Package heap is a binary heap of values; the first one is at index 0.
//
// Push, Pop and Replace hold no state of their own: such a heap is a slice of its owner's. Indexed is one whose elements know where
// they are, so that any can be taken off. Nothing blocks, and there are no errors; to take something off an empty heap panics, as an index
// out of range does.
package heap
