package queue

import "slices"

// Queue is a first-in-first-out queue. Its zero value is empty.
type Queue[T any] struct {
	items []T
	head  int // of items, the index of the first
}

// Len is how many there are.
func (q *Queue[T]) Len() int { return len(q.items) - q.head }

// Push adds x behind the last.
func (q *Queue[T]) Push(x T) {
	if len(q.items) == cap(q.items) && q.head > len(q.items)/2 { // move the values rather than grow the slice
		n := copy(q.items, q.items[q.head:])
		clear(q.items[n:])
		q.items, q.head = q.items[:n], 0
	}
	q.items = append(q.items, x)
}

// PushFront adds x before the first.
func (q *Queue[T]) PushFront(x T) {
	if q.head > 0 {
		q.head--
		q.items[q.head] = x
		return
	}
	q.items = append(q.items, x)
	copy(q.items[1:], q.items)
	q.items[0] = x
}

// Front is the first of a queue that is not empty.
func (q *Queue[T]) Front() T { return q.items[q.head] }

// Pop takes the first off a queue that is not empty.
func (q *Queue[T]) Pop() T {
	var none T
	x := q.items[q.head]
	q.items[q.head] = none // drop its references
	if q.head++; q.head == len(q.items) {
		q.items, q.head = q.items[:0], 0
	}
	return x
}

// Remove takes the one at index i of All off: what is before it moves up, so it costs little near the front.
func (q *Queue[T]) Remove(i int) T {
	all := q.All()
	x := all[i]
	copy(all[1:i+1], all[:i])
	q.Pop()
	return x
}

// Insert adds x at index i of All, before the one that was there: what is before it moves, so it costs little near the front.
func (q *Queue[T]) Insert(i int, x T) {
	q.PushFront(x)
	all := q.All()
	copy(all[:i], all[1:i+1])
	all[i] = x
}

// DeleteFunc takes off those of which gone is true.
func (q *Queue[T]) DeleteFunc(gone func(T) bool) {
	q.items = q.items[:q.head+len(slices.DeleteFunc(q.All(), gone))]
}

// All gives what is in the queue, first to last. It is valid until the queue changes.
func (q *Queue[T]) All() []T { return q.items[q.head:] }
