package mobula

import (
	"context"
	"runtime"

	"mobula/internal/client"
)

const getWindow = 4096 // references asked for at once: enough to hide the trips

// GetAll waits for all objects and gives copies, in order. It asks for them in bulk, which is
// much faster than one by one; of those in shared memory it holds one at a time, so any number fits any store. The
// error is that of the first one, in order, that has none.
func GetAll[T any](ctx context.Context, refs []Ref[T]) ([]T, error) {
	out := make([]T, len(refs))
	for from := 0; from < len(refs); from += getWindow {
		part := refs[from:min(from+getWindow, len(refs))]
		if err := awaitAll(ctx, part); err != nil {
			return nil, err
		}
		for i, r := range part {
			v, err := r.Get(ctx)
			if err != nil {
				return nil, err
			}
			out[from+i] = v
		}
	}
	return out, nil
}

// awaitAll returns when all are resolved.
func awaitAll[T any](ctx context.Context, refs []Ref[T]) error {
	if len(refs) == 1 {
		return nil // its Get waits
	}
	c, hs, err := handlesOf(refs)
	if err != nil || c == nil {
		return err
	}
	_, _, err = c.Wait(ctx, hs, len(hs))
	runtime.KeepAlive(refs)
	return err
}

// Wait returns when n of the references are resolved, with a value or an error, or ctx ends; ready has at
// least n of them unless there is an error, rest the others, both in order. At the end of ctx it gives what is ready so far
// and ErrGetTimeout or ErrCancelled; all references stay valid.
func Wait[T any](ctx context.Context, refs []Ref[T], n int) (ready, rest []Ref[T], err error) {
	n = min(n, len(refs))
	if n <= 0 {
		return nil, refs, nil
	}
	// One that failed to be submitted is ready: Get says why.
	var failed []Ref[T]
	live := refs
	for i, r := range refs {
		if r.Err() != nil {
			if failed == nil {
				live = append([]Ref[T](nil), refs[:i]...)
			}
			failed = append(failed, r)
		} else if failed != nil {
			live = append(live, r)
		}
	}
	if n -= len(failed); n <= 0 {
		return failed, live, nil
	}
	c, hs, err := handlesOf(live)
	if err != nil {
		return nil, refs, err
	}
	is, others, err := c.Wait(ctx, hs, n)
	runtime.KeepAlive(refs)
	ready = failed
	for _, i := range is {
		ready = append(ready, live[i])
	}
	for _, i := range others {
		rest = append(rest, live[i])
	}
	return ready, rest, err
}

func handlesOf[T any](refs []Ref[T]) (*client.Client, []*client.Handle, error) {
	if len(refs) == 0 {
		return nil, nil, nil
	}
	hs := make([]*client.Handle, len(refs))
	var c *client.Client
	for i, r := range refs {
		h, err := r.cell.handle()
		if err != nil {
			return nil, nil, err
		}
		if c == nil {
			c = r.cell.life.client
		} else if c != r.cell.life.client {
			return nil, nil, errForeign
		}
		hs[i] = h
	}
	return c, hs, nil
}
