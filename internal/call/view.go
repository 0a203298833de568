package call

import (
	"context"
	"sync"

	"mobula/internal/client"
	"mobula/internal/errs"
	"mobula/wire"
)

// View reads an object in place. It is safe for concurrent use once it is open.
type View[T any] struct {
	c     *client.Client
	mu    sync.Mutex
	data  client.Data // guarded by mu
	value T           // guarded by mu
	size  int
	open  bool // guarded by mu
	guard *guarded
}

// Open waits for the object.
func (v *View[T]) Open(ctx context.Context, c *Cell) error {
	d, err := c.fetch(ctx)
	if err != nil {
		return err
	}
	c.life.from.saw(d.Pinned())
	return v.set(c.life.client, d)
}

// OpenAll waits for the objects of all n views, which are in memory at once. On an error no view is left open.
func OpenAll[T any](ctx context.Context, n int, at At, view func(i int) *View[T]) error {
	c, hs, err := handlesOf(n, at)
	if err != nil || c == nil {
		return err
	}
	data, err := c.Get(ctx, hs...)
	if err != nil {
		return failure(c, err)
	}
	for i, d := range data {
		if err := view(i).set(c, d); err != nil {
			for _, d := range data[i+1:] {
				d.Release()
			}
			for i := range i {
				_ = view(i).Close() // open until now
			}
			return err
		}
	}
	return nil
}

// set opens the view on data of the client.
func (v *View[T]) set(c *client.Client, d client.Data) error {
	v.c, v.data, v.size, v.open = c, d, len(d.Value.Data), true
	value := d.Value
	if guardViews && d.Pinned() {
		v.guard = newGuard(value.Data)
		value = wire.Value{Meta: value.Meta, Data: v.guard.data, Refs: value.Refs}
	}
	var err error
	if v.value, err = decode[T](c, value, d.Pinned()); err != nil {
		d.Release()
		v.guard.close()
		return err
	}
	if !PlanOf[T]().InPlace() {
		d.Release() // the value is a copy anyway
	}
	return nil
}

// Value is the object's value.
func (v *View[T]) Value() (T, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if !v.open || v.c.Closed() {
		var none T
		return none, errViewClosed
	}
	return v.value, nil
}

// Size is the size of the encoded value in bytes.
func (v *View[T]) Size() (int, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if !v.open || v.c.Closed() {
		return 0, errViewClosed
	}
	return v.size, nil
}

// Close lets the object go.
func (v *View[T]) Close() error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if !v.open {
		return errViewClosed
	}
	var none T
	v.open, v.value = false, none
	v.guard.close()
	v.data.Release()
	return nil
}

var errViewClosed = errs.New(errs.CodeViewClosed, "the view, or its cluster, was closed: copy what is needed longer before Close")
