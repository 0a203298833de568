package mobula

import (
	"context"

	"mobula/internal/call"
)

// Ref names an object: a task's result, now or later, or a value that was put. It is small and
// cheap to copy; the zero Ref names nothing. It can be an argument, and can lie inside values. Its
// methods are safe for concurrent use, but after Release all others fail.
type Ref[T any] struct{ cell *call.Cell }

// Get waits for the object and gives a copy of its value. The error says why there is no value
// (*TaskError if the task failed), or is ErrGetTimeout or ErrCancelled if ctx ends first; the
// reference then stays valid. Get of an object that is in this process already asks nobody. While a
// task waits in Get, its CPU is lent to others.
func (r Ref[T]) Get(ctx context.Context) (T, error) { return call.Get[T](ctx, r.cell) }

// View waits for the object and gives a view that reads it in place, where its layout allows:
// slices of numbers and bytes. The object stays in memory until the view is closed.
func (r Ref[T]) View(ctx context.Context) (*View[T], error) {
	v := new(View[T])
	if err := v.v.Open(ctx, r.cell); err != nil {
		return nil, err
	}
	return v, nil
}

// Ready tells whether the object is known here to have been made, or failed. It never waits.
func (r Ref[T]) Ready() bool { return r.cell.Ready() }

// Release gives the object up for all copies of r, without waiting for the garbage collector. Later
// uses of r fail with ErrObjectFreed; the object itself lives on while others refer to it.
func (r Ref[T]) Release() { r.cell.Release() }

// Cancel cancels the task that makes the object. A task that has not started never will; of one that runs, the
// context ends. Get then fails with ErrCancelled, unless the task was done already. An object that was Put cannot be
// cancelled.
func (r Ref[T]) Cancel(ctx context.Context, opts ...CancelOption) error {
	var o cancelOptions
	for _, set := range opts {
		set(&o)
	}
	return r.cell.Cancel(ctx, o.force, o.recursive)
}

// CancelOption says how to cancel.
type CancelOption func(*cancelOptions)

type cancelOptions struct{ force, recursive bool }

// Force does not wait for the task to notice: the reference fails at once, and the process is
// killed after its other tasks have moved to other processes.
func Force() CancelOption { return func(o *cancelOptions) { o.force = true } }

// Recursive also cancels what the task has submitted.
func Recursive() CancelOption { return func(o *cancelOptions) { o.recursive = true } }

// ID names the object in lists, traces and errors. It is empty for a reference that names nothing.
func (r Ref[T]) ID() string { return r.cell.ID() }

// String is ID.
func (r Ref[T]) String() string { return r.ID() }

// Err says why r names no object, if its call could not even be submitted.
func (r Ref[T]) Err() error { return r.cell.Err() }

func (r Ref[T]) arg(*T) {} //nolint:unused // it makes Ref an Arg

// MarshalCBOR writes the reference as a tagged id, for the codec.
func (r Ref[T]) MarshalCBOR() ([]byte, error) { return r.cell.Marshal(false) }

// UnmarshalCBOR reads it; the codec then makes it live.
func (r *Ref[T]) UnmarshalCBOR(b []byte) (err error) {
	r.cell, err = call.UnmarshalRef(b, false)
	return err
}

func init() {
	call.Wrap = func(c *call.Cell, actor bool) any {
		if actor {
			return ActorRef[any]{c}
		}
		return Ref[any]{c}
	}
}
