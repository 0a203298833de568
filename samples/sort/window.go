package main

import (
	"context"

	"mobula"
)

// window bounds how many tasks are under way: a program that submitted all of them at once would
// have all their results in the store before the first is used.
type window[T any] struct {
	size int
	refs []mobula.Ref[T]
	each func(T) error
}

func newWindow[T any](size int, each func(T) error) *window[T] {
	return &window[T]{size: size, each: each}
}

func (w *window[T]) add(r mobula.Ref[T]) { w.refs = append(w.refs, r) }

// room waits until fewer than size are under way.
func (w *window[T]) room(ctx context.Context) error { return w.shrink(ctx, w.size-1) }

// drain waits until none is.
func (w *window[T]) drain(ctx context.Context) error { return w.shrink(ctx, 0) }

func (w *window[T]) shrink(ctx context.Context, to int) error {
	for len(w.refs) > to {
		ready, rest, err := mobula.Wait(ctx, w.refs, 1)
		if err != nil {
			return err
		}
		w.refs = rest
		for _, r := range ready {
			v, err := r.Get(ctx)
			if err != nil {
				return err
			}
			if err := w.each(v); err != nil {
				return err
			}
		}
	}
	return nil
}

// waiting is a window over large results, which are not looked at.
type waiting struct {
	size int
	refs []mobula.Ref[[]byte]
	done map[mobula.Ref[[]byte]]func()
}

func newWaiting(size int) *waiting {
	return &waiting{size: size, done: make(map[mobula.Ref[[]byte]]func())}
}

func (w *waiting) add(r mobula.Ref[[]byte], done func()) {
	w.refs = append(w.refs, r)
	w.done[r] = done
}

func (w *waiting) room(ctx context.Context) error { return w.shrink(ctx, w.size-1) }

func (w *waiting) drain(ctx context.Context) error { return w.shrink(ctx, 0) }

func (w *waiting) shrink(ctx context.Context, to int) error {
	for len(w.refs) > to {
		ready, rest, err := mobula.Wait(ctx, w.refs, 1)
		if err != nil {
			return err
		}
		w.refs = rest
		for _, r := range ready {
			w.done[r]()
			delete(w.done, r)
		}
	}
	return nil
}
