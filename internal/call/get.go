package call

import (
	"context"
	"runtime"

	"mobula/internal/client"
	"mobula/internal/errs"
	"mobula/wire"
)

// At gives the i-th of some references.
type At = func(i int) *Cell

// fetch waits for the object.
func (c *Cell) fetch(ctx context.Context) (client.Data, error) {
	h, err := c.handle()
	if err != nil {
		return client.Data{}, err
	}
	d, err := c.life.client.Get1(ctx, h)
	if err != nil {
		err = failure(c.life.client, err)
	}
	runtime.KeepAlive(c)
	return d, err
}

// Get waits for the object and gives a copy. It repeats the code of fetch: for an object that is here already that saves copies of
// a Data.
func Get[T any](ctx context.Context, c *Cell) (T, error) {
	var none T
	h, err := c.handle()
	if err != nil {
		return none, err
	}
	l := c.life
	d, err := l.client.Get1(ctx, h)
	if err != nil {
		err = failure(l.client, err)
	}
	runtime.KeepAlive(c)
	if err != nil {
		return none, err
	}
	v, err := decode[T](l.client, d.Value, false)
	l.from.saw(d.Pinned())
	d.Release()
	return v, err
}

const getWindow = 4096 // references asked for at once: enough to hide the round trips

// GetAll waits for n objects and gives copies, in order.
func GetAll[T any](ctx context.Context, n int, at At) ([]T, error) {
	out := make([]T, n)
	for from := 0; from < n; from += getWindow {
		to := min(from+getWindow, n)
		if err := awaitAll(ctx, from, to, at); err != nil {
			return nil, err
		}
		for i := from; i < to; i++ {
			v, err := Get[T](ctx, at(i))
			if err != nil {
				return nil, err
			}
			out[i] = v
		}
	}
	return out, nil
}

// awaitAll returns when all are resolved.
func awaitAll(ctx context.Context, from, to int, at At) error {
	if to-from == 1 {
		return nil // its Get waits
	}
	c, hs, err := handlesOf(to-from, func(i int) *Cell { return at(from + i) })
	if err != nil || c == nil {
		return err
	}
	_, _, err = c.Wait(ctx, hs, len(hs))
	return err
}

// Wait returns when want of the n references are resolved, or ctx ends. A reference whose call could not be submitted counts as
// resolved: Get gives its error. Wait gives the indices of the resolved references, those whose submit failed first, and the indices
// of the rest, each in order.
func Wait(ctx context.Context, n int, at At, want int) (ready, rest []int, err error) {
	var live []int // nil: all
	for i := range n {
		switch {
		case at(i).Err() != nil:
			if ready == nil {
				live = make([]int, 0, n)
				for i := range i {
					live = append(live, i)
				}
			}
			ready = append(ready, i)
		case ready != nil:
			live = append(live, i)
		}
	}
	of := func(i int) int { return i }
	if ready != nil {
		of = func(i int) int { return live[i] }
		if want -= len(ready); want <= 0 {
			return ready, live, nil
		}
	}
	c, hs, err := handlesOf(n-len(ready), func(i int) *Cell { return at(of(i)) })
	if err != nil {
		return nil, nil, err
	}
	is, others, err := c.Wait(ctx, hs, want)
	if ready == nil {
		return is, others, err
	}
	for _, i := range is {
		ready = append(ready, live[i])
	}
	for i, at := range others {
		others[i] = live[at]
	}
	return ready, others, err
}

// handlesOf gives the handles of n references, which are of one client.
func handlesOf(n int, at At) (*client.Client, []*client.Handle, error) {
	if n == 0 {
		return nil, nil, nil
	}
	hs := make([]*client.Handle, n)
	var c *client.Client
	for i := range n {
		cell := at(i)
		h, err := cell.handle()
		if err != nil {
			return nil, nil, err
		}
		if c == nil {
			c = cell.life.client
		} else if c != cell.life.client {
			return nil, nil, errForeign
		}
		hs[i] = h
	}
	return c, hs, nil
}

// Cancel cancels the task that makes the object.
func (c *Cell) Cancel(ctx context.Context, force, recursive bool) error {
	h, err := c.handle()
	if err != nil {
		return err
	}
	id := h.ID()
	runtime.KeepAlive(c)
	if id.IsPut() {
		return errs.New(errs.CodeInvalid, "object %v was put: there is no task to cancel", id)
	}
	if err := ctx.Err(); err != nil {
		return errs.From(err)
	}
	return c.life.client.Cancel(wire.Cancel{Task: id.Task, Force: force, Recursive: recursive})
}
