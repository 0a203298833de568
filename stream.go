package mobula

import (
	"context"
	"iter"
	"runtime"
	"sync/atomic"

	"mobula/internal/client"
	"mobula/internal/codec"
	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/internal/registry"
)

// Stream is the consumer's end of a streaming task. Each item is an object of its own. It is for
// one goroutine at a time.
type Stream[T any] struct {
	end  *streamEnd
	next uint32
	err  error
	done bool
}

// streamEnd outlives the Stream, to end the task of one that was dropped.
type streamEnd struct {
	c    *client.Client
	task ids.TaskID
	f    *function
	over atomic.Bool
}

// Next waits for the next item; ok is false after the last one. An error ends the stream,
// except that of ctx, after which Next may be called again.
func (s *Stream[T]) Next(ctx context.Context) (item Ref[T], ok bool, err error) {
	if s.done || s.err != nil {
		return Ref[T]{}, false, s.err
	}
	h, ok, err := s.end.c.Next(ctx, s.end.task, s.next)
	runtime.KeepAlive(s)
	switch {
	case err != nil:
		if ctx.Err() == nil {
			err = failure(s.end.c, err)
			s.finish(err)
		}
		return Ref[T]{}, false, err
	case !ok:
		s.finish(nil)
		return Ref[T]{}, false, nil
	}
	s.next++
	return Ref[T]{newCell(s.end.c, h, s.end.f)}, true, nil
}

func (s *Stream[T]) finish(err error) {
	s.done, s.err = true, err
	s.end.over.Store(true)
	if e, ok := err.(*errs.Error); ok && len(e.AllRefs()) > 0 {
		s.end.c.Leave(s.end.task) // the stream has held them until now
	} else {
		s.end.c.Unread(s.end.task)
	}
}

// All ranges over the rest of the items; an error is the last thing it yields. Leaving the loop early cancels the task.
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

// Close ends the stream: a task that still produces is cancelled. Items that were taken stay.
func (s *Stream[T]) Close() {
	if s.end == nil {
		return
	}
	s.end.close()
	s.done = true
}

func (e *streamEnd) close() {
	if !e.over.Swap(true) {
		e.c.Leave(e.task)
	}
}

// ID names the stream's task.
func (s *Stream[T]) ID() string {
	if s.end == nil {
		return ""
	}
	return s.end.task.String()
}

// stream submits a streaming task.
func stream[T any](k *call) *Stream[T] {
	if k.err != nil {
		return &Stream[T]{err: k.err}
	}
	k.tc.Client.Reads(k.spec.ID)
	if k.submit(); k.err != nil {
		k.tc.Client.Unread(k.spec.ID)
		return &Stream[T]{err: k.err}
	}
	s := &Stream[T]{end: &streamEnd{c: k.tc.Client, task: k.spec.ID, f: k.f}}
	runtime.AddCleanup(s, (*streamEnd).close, s.end)
	return s
}

// emit hands a producer's items over.
func emit[T any](ctx context.Context, c *registry.Call, name string, p *codec.Plan, items iter.Seq2[T, error]) ([]registry.Output, any, error) {
	if items == nil {
		return nil, nil, nil
	}
	if c.Emit == nil {
		return nil, nil, errs.New(errs.CodeRegistryMismatch, "%s: called as a function, this binary has it as a stream", name)
	}
	i := 0
	for v, err := range items {
		if err != nil {
			return nil, nil, err
		}
		var out registry.Output
		if err := encodeOutput(ctx, &out, i, p, &v); err != nil {
			return nil, nil, err
		}
		if err := c.Emit(out); err != nil {
			return nil, nil, err
		}
		i++
	}
	return nil, nil, nil
}
