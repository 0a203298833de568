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
	done map[mobula.Ref[T]]func(r mobula.Ref[T]) error
}

func newWindow[T any](size int) *window[T] {
	return &window[T]{size: size, done: make(map[mobula.Ref[T]]func(mobula.Ref[T]) error)}
}

// add counts a task as under way until its result is there; done is then called with it.
func (w *window[T]) add(r mobula.Ref[T], done func(r mobula.Ref[T]) error) {
	w.refs = append(w.refs, r)
	w.done[r] = done
}

// room waits until fewer than size are under way.
func (w *window[T]) room(ctx context.Context) error { return w.shrink(ctx, w.size-1) }

// drain waits until none is under way.
func (w *window[T]) drain(ctx context.Context) error { return w.shrink(ctx, 0) }

func (w *window[T]) shrink(ctx context.Context, to int) error {
	for len(w.refs) > to {
		ready, rest, err := mobula.Wait(ctx, w.refs, 1)
		if err != nil {
			return err
		}
		w.refs = rest
		for _, r := range ready {
			if err := w.done[r](r); err != nil {
				return err
			}
			delete(w.done, r)
		}
	}
	return nil
}
