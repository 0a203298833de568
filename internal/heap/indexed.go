package heap

// Indexed is a heap that tells its elements where they are, so that any of them can be taken off.
type Indexed[T any] struct {
	items  []T
	before func(a, b *T) bool
	moved  func(x *T, i int)
}

// NewIndexed makes an empty heap, in which before tells which of two comes first. moved tells an element its index
// whenever that changes; one that was taken off has -1.
func NewIndexed[T any](before func(a, b *T) bool, moved func(x *T, i int)) Indexed[T] {
	return Indexed[T]{before: before, moved: moved}
}

// Len is how many there are.
func (h *Indexed[T]) Len() int { return len(h.items) }

// First is the first of a heap that is not empty.
func (h *Indexed[T]) First() T { return h.items[0] }

// All gives what is in the heap: the first, then the others in no order. It is valid until the heap changes.
func (h *Indexed[T]) All() []T { return h.items }

// Push adds x.
func (h *Indexed[T]) Push(x T) {
	i := len(h.items)
	h.items = append(h.items, x)
	h.moved(&h.items[i], i)
	rise(h.items, i, h.before, h.moved)
}

// Remove takes off the one at index i.
func (h *Indexed[T]) Remove(i int) T {
	n := len(h.items) - 1
	x := h.items[i]
	h.items[i] = h.items[n]
	clear(h.items[n:]) // what it refers to is not kept
	h.items = h.items[:n]
	if i < n {
		h.moved(&h.items[i], i)
		sink(h.items, i, h.before, h.moved)
		rise(h.items, i, h.before, h.moved)
	}
	h.moved(&x, -1)
	return x
}
