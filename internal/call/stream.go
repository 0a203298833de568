package call

import (
	"context"
	"iter"
	"runtime"
	"sync/atomic"

	"mobula/internal/client"
	"mobula/internal/errs"
	"mobula/internal/ids"
)

// Stream is the consumer's end of a streaming task. It is for one goroutine at a time.
type Stream struct {
	end  *streamEnd
	next uint32
	err  error
	done bool
}

// streamEnd outlives the Stream, to end the task of a Stream that was dropped.
type streamEnd struct {
	c    *client.Client
	task ids.TaskID
	f    *Function
	over atomic.Bool
}

// Open submits the streaming task. When s, or the value that contains it, is garbage, the task is cancelled.
func (s *Stream) Open(k *Call) {
	if s.err = k.err; s.err != nil {
		return
	}
	k.tc.Client.Reads(k.spec.ID)
	if k.Submit(); k.err != nil {
		k.tc.Client.Unread(k.spec.ID)
		s.err = k.err
		return
	}
	s.end = &streamEnd{c: k.tc.Client, task: k.spec.ID, f: k.f}
	runtime.AddCleanup(s, (*streamEnd).dropped, s.end)
}

// Next waits for the next item; ok is false after the last one. An error ends the stream,
// except that of ctx, after which Next may be called again.
func (s *Stream) Next(ctx context.Context) (item *Cell, ok bool, err error) {
	if s.done || s.err != nil {
		return nil, false, s.err
	}
	h, ok, err := s.end.c.Next(ctx, s.end.task, s.next)
	runtime.KeepAlive(s)
	switch {
	case err != nil:
		if ctx.Err() == nil {
			err = failure(s.end.c, err)
			s.finish(err)
		}
		return nil, false, err
	case !ok:
		s.finish(nil)
		return nil, false, nil
	}
	s.next++
	return newCell(s.end.c, h, s.end.f), true, nil
}

func (s *Stream) finish(err error) {
	s.done, s.err = true, err
	s.end.close()
}

// Close ends the stream: if its task still runs, it is cancelled.
func (s *Stream) Close() {
	if s.end == nil {
		return
	}
	s.end.close()
	s.done = true
}

// dropped closes the end of a stream that is garbage. It does not wait for the node, as other cleanups of the process are behind it.
func (e *streamEnd) dropped() {
	if !e.over.Load() {
		go e.close()
	}
}

func (e *streamEnd) close() {
	if !e.over.Swap(true) {
		e.c.Leave(e.task)
	}
}

// ID names the stream's task; empty: there is none.
func (s *Stream) ID() string {
	if s.end == nil {
		return ""
	}
	return s.end.task.String()
}

// Emit sends a producer's items.
func Emit[T any](ctx context.Context, c *Task, name string, p *Plan, items iter.Seq2[T, error]) ([]Output, any, error) {
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
		var out Output
		if err := Encode(ctx, &out, i, p, &v); err != nil {
			return nil, nil, err
		}
		if err := c.Emit(out); err != nil {
			return nil, nil, err
		}
		i++
	}
	return nil, nil, nil
}
