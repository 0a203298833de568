package mobula

import (
	"context"
	"runtime"
	"sync"

	"mobula/internal/client"
	"mobula/internal/errs"
	"mobula/wire"
)

// View reads an object in place. Close it: until then the object stays in memory. Its methods are
// safe for concurrent use.
type View[T any] struct {
	c     *client.Client
	mu    sync.Mutex
	data  client.Data // guarded by mu
	value T           // guarded by mu
	size  int
	open  bool // guarded by mu
	guard *guarded
}

// ViewAll waits for all objects and gives a view of each, in order. All of them are in memory at once: they
// must fit the store together. On an error none is left open.
func ViewAll[T any](ctx context.Context, refs []Ref[T]) ([]*View[T], error) {
	c, hs, err := handlesOf(refs)
	if err != nil || c == nil {
		return nil, err
	}
	data, err := c.Get(ctx, hs...)
	if err != nil {
		err = failure(c, err)
	}
	runtime.KeepAlive(refs)
	if err != nil {
		return nil, err
	}
	out := make([]*View[T], 0, len(data))
	for i, d := range data {
		v, err := newView[T](c, d)
		if err != nil {
			for _, d := range data[i+1:] {
				d.Release()
			}
			for _, v := range out {
				_ = v.Close() // open until now
			}
			return nil, err
		}
		out = append(out, v)
	}
	return out, nil
}

func newView[T any](c *client.Client, d client.Data) (*View[T], error) {
	v := &View[T]{c: c, data: d, size: len(d.Value.Data), open: true}
	value := d.Value
	if guardViews && d.Pinned() {
		v.guard = newGuard(value.Data)
		value = wire.Value{Meta: value.Meta, Data: v.guard.data, Refs: value.Refs}
	}
	var err error
	if v.value, err = decode[T](c, value, true); err != nil {
		d.Release()
		v.guard.close()
		return nil, err
	}
	if !planOf[T]().InPlace() {
		d.Release() // the value is a copy anyway
	}
	return v, nil
}

// Value is the object's value. Slices in it are read-only and must not be used after Close, nor after the cluster's: then
// the memory is not this process' any more, and Value gives ErrViewClosed.
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

// Close lets the object go. Closing again gives ErrViewClosed and does nothing.
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
