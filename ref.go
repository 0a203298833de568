package mobula

import (
	"context"
	"runtime"

	"mobula/internal/client"
	"mobula/internal/codec"
	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/wire"
)

// Ref names an object: a task's result, now or later, or a value that was put. It is a small
// value to copy; the zero Ref names nothing. It can be an argument, and lie inside
// values. Its methods are safe for concurrent use, except that Release ends all others.
type Ref[T any] struct{ cell *cell }

// Get waits for the object and gives a copy of its own. The error is why there is none
// (*TaskError if the task failed), or ErrGetTimeout or ErrCancelled when ctx ends first: the
// reference then stays valid. A Get of an object that is here already costs no trip. A
// task that waits gives its CPU back meanwhile.
func (r Ref[T]) Get(ctx context.Context) (T, error) {
	var none T
	h, err := r.cell.handle()
	if err != nil {
		return none, err
	}
	l := r.cell.life
	d, err := l.client.Get1(ctx, h)
	if err != nil {
		err = failure(l.client, err)
	}
	runtime.KeepAlive(r.cell)
	if err != nil {
		return none, err
	}
	v, err := decode[T](l.client, d.Value, false)
	l.from.saw(d.Pinned())
	d.Release()
	return v, err
}

// View waits for the object and gives a view that reads it in place, where its layout allows:
// slices of numbers and bytes. The object stays in memory until the view is closed.
func (r Ref[T]) View(ctx context.Context) (*View[T], error) {
	h, err := r.cell.handle()
	if err != nil {
		return nil, err
	}
	l := r.cell.life
	d, err := l.client.Get1(ctx, h)
	if err != nil {
		err = failure(l.client, err)
	}
	runtime.KeepAlive(r.cell)
	if err != nil {
		return nil, err
	}
	l.from.saw(d.Pinned())
	return newView[T](l.client, d)
}

// Ready tells whether the object is known here to have been made, or failed. It never waits.
func (r Ref[T]) Ready() bool {
	h, err := r.cell.handle()
	ready := err != nil || h.Ready()
	runtime.KeepAlive(r.cell)
	return ready
}

// Release gives the object up ahead of the garbage collector, for all copies of r. Later
// uses of r fail with ErrObjectFreed; the object itself lives on while others refer to it.
func (r Ref[T]) Release() { r.cell.release() }

// Cancel cancels the task that makes the object: before it starts it never will, while it runs its
// context ends. Then Get fails with ErrCancelled, unless the task was done already. What was put cannot be cancelled.
func (r Ref[T]) Cancel(ctx context.Context, opts ...CancelOption) error {
	h, err := r.cell.handle()
	if err != nil {
		return err
	}
	id := h.ID()
	c := r.cell.life.client
	runtime.KeepAlive(r.cell)
	if id.IsPut() {
		return errs.New(errs.CodeInvalid, "object %v was put: there is no task to cancel", id)
	}
	return cancelTask(ctx, c, id.Task, opts)
}

func cancelTask(ctx context.Context, c *client.Client, task ids.TaskID, opts []CancelOption) error {
	if err := ctx.Err(); err != nil {
		return errs.From(err)
	}
	var o cancelOptions
	for _, set := range opts {
		set(&o)
	}
	return c.Cancel(wire.Cancel{Task: task, Force: o.force, Recursive: o.recursive})
}

// CancelOption says how to cancel.
type CancelOption func(*cancelOptions)

type cancelOptions struct{ force, recursive bool }

// Force does not wait for the task to notice: the reference fails at once, and the process
// is killed, after its other tasks have moved away.
func Force() CancelOption { return func(o *cancelOptions) { o.force = true } }

// Recursive cancels also what the task has submitted.
func Recursive() CancelOption { return func(o *cancelOptions) { o.recursive = true } }

// ID names the object in lists, traces and errors. It is empty for a reference that names nothing.
func (r Ref[T]) ID() string {
	id, err := r.objectID()
	if err != nil || id.IsZero() {
		return ""
	}
	return id.String()
}

// String is ID.
func (r Ref[T]) String() string { return r.ID() }

// Err is why r names no object, for a reference whose call could not even be submitted.
func (r Ref[T]) Err() error {
	_, err := r.cell.handle()
	return err
}

func (r Ref[T]) arg(*T) {} //nolint:unused // it makes Ref an Arg

func (r Ref[T]) objectID() (ids.ObjectID, error) { return r.cell.objectID() }

func (c *cell) objectID() (ids.ObjectID, error) {
	if c == nil {
		return ids.ObjectID{}, nil
	}
	h, err := c.handle()
	if err != nil {
		return ids.ObjectID{}, err
	}
	id := h.ID()
	runtime.KeepAlive(c)
	return id, nil
}

func (r *Ref[T]) bind(b codec.Binder) error { return rebind(&r.cell, b, codec.TagRef) }

// MarshalCBOR writes the reference as a tagged id, for the codec.
func (r Ref[T]) MarshalCBOR() ([]byte, error) { return marshalRef(r, codec.TagRef) }

// UnmarshalCBOR reads it; the codec then makes it live.
func (r *Ref[T]) UnmarshalCBOR(b []byte) (err error) {
	r.cell, err = unmarshalRef(b, codec.TagRef)
	return err
}
