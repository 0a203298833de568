package mobula

import (
	"context"
	"runtime"

	"mobula/internal/call"
)

// View reads an object in place. Close it: until then the object stays in memory. Its methods are
// safe for concurrent use.
type View[T any] struct{ v call.View[T] }

// ViewAll waits for all objects and gives a view of each, in order. All are in memory at once: they must
// fit the store together. On an error no view is left open.
func ViewAll[T any](ctx context.Context, refs []Ref[T]) ([]*View[T], error) {
	if len(refs) == 0 {
		return nil, nil
	}
	out := make([]*View[T], len(refs))
	for i := range out {
		out[i] = new(View[T])
	}
	err := call.OpenAll(ctx, len(refs), cells(refs), func(i int) *call.View[T] { return &out[i].v })
	runtime.KeepAlive(refs)
	if err != nil {
		return nil, err
	}
	return out, nil
}

// Value is the object's value. Slices in it are read-only and must not be used after Close of the view or of the cluster:
// the memory is no longer this process', and Value gives ErrViewClosed.
func (v *View[T]) Value() (T, error) { return v.v.Value() }

// Size is the size of the encoded value in bytes.
func (v *View[T]) Size() (int, error) { return v.v.Size() }

// Close lets the object go. A second Close does nothing and gives ErrViewClosed.
func (v *View[T]) Close() error { return v.v.Close() }
