package mobula

import (
	"context"
	"runtime"

	"mobula/internal/call"
)

// GetAll waits for all objects and gives copies, in order. It asks for them in bulk, which is much faster than one
// by one. It pins one object in shared memory at a time, so any number fits any store. The error is that of the
// first object, in order, that has no value.
func GetAll[T any](ctx context.Context, refs []Ref[T]) ([]T, error) {
	out, err := call.GetAll[T](ctx, len(refs), cells(refs))
	runtime.KeepAlive(refs)
	return out, err
}

// Wait returns when n of the references are resolved, with a value or an error, or when ctx ends. Ready has at least n of
// them unless there is an error, and rest has the others, both in order. When ctx ends, Wait gives what is ready so far and
// ErrGetTimeout or ErrCancelled; all references stay valid.
func Wait[T any](ctx context.Context, refs []Ref[T], n int) (ready, rest []Ref[T], err error) {
	n = min(n, len(refs))
	if n <= 0 {
		return nil, refs, nil
	}
	done, others, err := call.Wait(ctx, len(refs), cells(refs), n)
	runtime.KeepAlive(refs)
	if err != nil && done == nil && others == nil {
		return nil, refs, err // Wait could not begin
	}
	return pick(refs, done), pick(refs, others), err
}

// pick gives the references at the indices, nil if there are none.
func pick[T any](refs []Ref[T], at []int) []Ref[T] {
	if len(at) == 0 {
		return nil
	}
	picked := make([]Ref[T], len(at))
	for i, k := range at {
		picked[i] = refs[k]
	}
	return picked
}

func cells[T any](refs []Ref[T]) call.At { return func(i int) *call.Cell { return refs[i].cell } }
