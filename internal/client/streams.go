package client

import (
	"context"
	"sync"

	"mobula/internal/ids"
	"mobula/wire"
)

// streams are the streams that this process reads, and the items that its goroutines wait for.
type streams struct {
	*base
	handles *handles
	outbox  *outbox

	mu   sync.Mutex
	open map[itemKey]*itemWait   // guarded by mu
	read map[ids.TaskID]struct{} // guarded by mu
}

// Reads notes that this process reads a task's stream, from before the submit until Unread: a restarted node ends streams that
// nobody reads.
func (s *streams) Reads(task ids.TaskID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.read == nil {
		s.read = make(map[ids.TaskID]struct{})
	}
	s.read[task] = struct{}{}
}

// Unread takes Reads back.
func (s *streams) Unread(task ids.TaskID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.read, task)
}

// reads tells whether this process reads a task's stream.
func (s *streams) reads(task ids.TaskID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.read[task]
	return ok
}

// Leave ends the reading of a stream. Before its end items that were not taken are dropped, also one that was asked for, and a task that still produces
// is cancelled.
func (s *streams) Leave(task ids.TaskID) {
	s.Unread(task)
	_ = s.outbox.send(&wire.Release{IDs: []ids.ObjectID{task.Stream()}}) // if the connection is gone, so is the stream
}

type itemKey struct {
	task  ids.TaskID
	index uint32
}

// itemWait is one item; several readers share the question.
type itemWait struct {
	readers int           // guarded by streams.mu
	done    chan struct{} // closed when h, end and err are set
	h       *Handle       // has one user per reader; written under streams.mu
	end     bool
	err     error
}

// Next waits for the i-th item of a task's stream. It gives the item's handle; or false
// at the end of the stream; or the error that ended the stream there. For the producer's bound an item counts as
// consumed once it was handed out.
func (s *streams) Next(ctx context.Context, task ids.TaskID, i uint32) (*Handle, bool, error) {
	if err := s.Err(); err != nil {
		return nil, false, err
	}
	if ctx.Err() != nil {
		return nil, false, ctxError(ctx)
	}
	k := itemKey{task, i}
	s.mu.Lock()
	w := s.open[k]
	fresh := w == nil
	if fresh {
		w = &itemWait{done: make(chan struct{})}
		if s.open == nil {
			s.open = make(map[itemKey]*itemWait)
		}
		s.open[k] = w
	}
	w.readers++
	s.mu.Unlock()
	if fresh {
		if err := s.outbox.send(&wire.StreamNext{Task: task, Index: i, Leaves: true}); err != nil {
			s.leave(k, w)
			return nil, false, err
		}
	}
	if err := s.awaitItem(ctx, w); err != nil {
		s.leave(k, w)
		return nil, false, err
	}
	if w.err != nil || w.end {
		return nil, false, w.err
	}
	return w.h, true, nil
}

func (s *streams) awaitItem(ctx context.Context, w *itemWait) error {
	select {
	case <-w.done:
		return nil
	default:
	}
	s.waits()
	if tc := FromContext(ctx); tc != nil && tc.Blocker != nil {
		tc.Blocker.Blocked(ctx, nil)
		defer tc.Blocker.Unblocked(ctx)
	}
	select {
	case <-w.done:
		return nil
	case <-ctx.Done():
		return ctxError(ctx)
	case <-s.dead:
		return s.cause
	}
}

// leave removes a reader that no longer waits.
func (s *streams) leave(k itemKey, w *itemWait) {
	s.mu.Lock()
	w.readers--
	if w.readers == 0 && s.open[k] == w {
		delete(s.open, k)
	}
	h := w.h // it may have come meanwhile
	s.mu.Unlock()
	if h != nil {
		h.Release()
	}
}

func (s *streams) streamed(m *wire.StreamItem) {
	k := itemKey{m.Task, m.Index}
	s.mu.Lock()
	w := s.open[k]
	if w == nil {
		s.mu.Unlock()
		return // every reader has left; one that comes back asks again
	}
	delete(s.open, k)
	fresh := false
	switch m.Result.Kind {
	case wire.ResultNone:
		w.end = true
	case wire.ResultError:
		w.err = failureOf(m.Task.Return(int(m.Index)), &m.Result)
	default:
		w.h, fresh = s.handles.resolvedHandle(m.Task.Return(int(m.Index)), &m.Result)
		for range w.readers - 1 {
			w.h.Retain()
		}
	}
	s.mu.Unlock()
	if fresh {
		_ = s.outbox.send(&wire.AddRef{ID: w.h.id}) // where the connection is gone, every use of h says so
	}
	close(w.done)
}
