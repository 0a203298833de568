package mobula

import (
	"context"

	"mobula/internal/call"
)

// Buffer is memory in the store that a program writes in place: fill Slice, then call Put, or, if
// it came from CreateResult, return the slice from the task. Either way nothing is copied. The
// first contents are undefined. A Buffer belongs to one goroutine at a time.
type Buffer[T any] struct{ b call.Buffer[T] }

// Create gets room for n elements, which must be numbers or arrays of numbers. It waits while the
// store is full. End it with Put or Abort.
func Create[T any](ctx context.Context, n int) (*Buffer[T], error) {
	b := new(Buffer[T])
	if err := b.b.Create(ctx, n); err != nil {
		return nil, err
	}
	return b, nil
}

// CreateResult gets room for the task's result of that index: 0 for an only result, and for a stream the item's number,
// from 0. The task returns or yields the buffer's slice as its []T; the slice is recognised and sealed where it lies. A
// buffer that is not returned is freed when the task ends.
func CreateResult[T any](ctx context.Context, index, n int) (*Buffer[T], error) {
	b := new(Buffer[T])
	if err := b.b.CreateResult(ctx, index, n); err != nil {
		return nil, err
	}
	return b, nil
}

// Slice is the memory. It must not be used after Put, Abort or the task's end.
func (b *Buffer[T]) Slice() []T { return b.b.Slice() }

// Put seals the buffer and makes an object of it.
func (b *Buffer[T]) Put() (Ref[[]T], error) {
	c, err := b.b.Put()
	return Ref[[]T]{c}, err
}

// Abort gives the memory back. After Put it does nothing.
func (b *Buffer[T]) Abort() { b.b.Abort() }
