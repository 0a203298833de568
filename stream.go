package mobula

import (
	"context"
	"iter"

	"mobula/internal/call"
)

// Stream is the consumer's end of a streaming task. Each item is an object of its own. It is for
// one goroutine at a time.
type Stream[T any] struct{ s call.Stream }

// Next waits for the next item; ok is false after the last one. An error ends the stream,
// except that of ctx, after which Next may be called again.
func (s *Stream[T]) Next(ctx context.Context) (item Ref[T], ok bool, err error) {
	c, ok, err := s.s.Next(ctx)
	return Ref[T]{c}, ok, err
}

// All ranges over the remaining items; an error is the last thing it yields. Leaving the loop early cancels the task.
func (s *Stream[T]) All(ctx context.Context) iter.Seq2[Ref[T], error] {
	return func(yield func(Ref[T], error) bool) {
		for {
			item, ok, err := s.Next(ctx)
			if err != nil {
				yield(Ref[T]{}, err)
				return
			}
			if !ok {
				return
			}
			if !yield(item, nil) {
				s.Close()
				return
			}
		}
	}
}

// Close ends the stream: if its task still runs, it is cancelled. Items that were taken stay valid.
func (s *Stream[T]) Close() { s.s.Close() }

// ID names the stream's task.
func (s *Stream[T]) ID() string { return s.s.ID() }
