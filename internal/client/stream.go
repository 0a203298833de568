package client

import (
	"context"
	"sync"

	"mobula/internal/ids"
	"mobula/wire"
)

// streams are the streams that this process reads, and the items that its goroutines wait for.
type streams struct {
	mu   sync.Mutex
	open map[itemKey]*itemWait   // guarded by mu
	read map[ids.TaskID]struct{} // guarded by mu
}

// Reads notes that this process reads a task's stream, from before it is submitted until Unread: a node that has restarted ends
// those that nobody reads.
func (c *Client) Reads(task ids.TaskID) {
	c.streams.mu.Lock()
	defer c.streams.mu.Unlock()
	if c.streams.read == nil {
		c.streams.read = make(map[ids.TaskID]struct{})
	}
	c.streams.read[task] = struct{}{}
}

// Unread notes that a stream was read to its end.
func (c *Client) Unread(task ids.TaskID) {
	c.streams.mu.Lock()
	defer c.streams.mu.Unlock()
	delete(c.streams.read, task)
}

// Leave gives up a stream before its end: its items that were not taken go, that was asked for included, and a task that still
// produces is cancelled.
func (c *Client) Leave(task ids.TaskID) {
	c.Unread(task)
	_ = c.send(&wire.Release{IDs: []ids.ObjectID{task.Stream()}}) // where the connection is gone, so is the stream
}

type itemKey struct {
	task  ids.TaskID
	index uint32
}

// itemWait is one item; several readers share the question.
type itemWait struct {
	readers int           // guarded by streams.mu
	done    chan struct{} // closed when h, end and err are set
	h       *Handle       // one user a reader; written under streams.mu
	end     bool
	err     error
}

// Next waits for the i-th item of a task's stream. It gives the item's handle; or false
// at the end of the stream; or the error that ended the stream there. An item counts as
// consumed, for the producer's bound, when it was handed out.
func (c *Client) Next(ctx context.Context, task ids.TaskID, i uint32) (*Handle, bool, error) {
	if err := c.Err(); err != nil {
		return nil, false, err
	}
	if ctx.Err() != nil {
		return nil, false, ctxError(ctx)
	}
	k := itemKey{task, i}
	c.streams.mu.Lock()
	w := c.streams.open[k]
	fresh := w == nil
	if fresh {
		w = &itemWait{done: make(chan struct{})}
		if c.streams.open == nil {
			c.streams.open = make(map[itemKey]*itemWait)
		}
		c.streams.open[k] = w
	}
	w.readers++
	c.streams.mu.Unlock()
	if fresh {
		if err := c.send(&wire.StreamNext{Task: task, Index: i}); err != nil {
			c.leave(k, w)
			return nil, false, err
		}
	}
	if err := c.awaitItem(ctx, w); err != nil {
		c.leave(k, w)
		return nil, false, err
	}
	if w.err != nil || w.end {
		return nil, false, w.err
	}
	return w.h, true, nil
}

func (c *Client) awaitItem(ctx context.Context, w *itemWait) error {
	select {
	case <-w.done:
		return nil
	default:
	}
	c.waits()
	if tc := FromContext(ctx); tc != nil && tc.Blocker != nil {
		tc.Blocker.Blocked(ctx, nil)
		defer tc.Blocker.Unblocked(ctx)
	}
	select {
	case <-w.done:
		return nil
	case <-ctx.Done():
		return ctxError(ctx)
	case <-c.dead:
		return c.cause
	}
}

// leave takes one reader away that does not wait any more.
func (c *Client) leave(k itemKey, w *itemWait) {
	c.streams.mu.Lock()
	w.readers--
	if w.readers == 0 && c.streams.open[k] == w {
		delete(c.streams.open, k)
	}
	h := w.h // it may have come all the same
	c.streams.mu.Unlock()
	if h != nil {
		h.Release()
	}
}

func (c *Client) streamed(m *wire.StreamItem) {
	k := itemKey{m.Task, m.Index}
	c.streams.mu.Lock()
	w := c.streams.open[k]
	if w == nil {
		c.streams.mu.Unlock()
		return // every reader has left; whoever comes back asks again
	}
	delete(c.streams.open, k)
	fresh := false
	switch m.Result.Kind {
	case wire.ResultNone:
		w.end = true
	case wire.ResultError:
		w.err = failureOf(m.Task.Return(int(m.Index)), &m.Result)
	default:
		w.h, fresh = c.resolvedHandle(m.Task.Return(int(m.Index)), &m.Result)
		for range w.readers - 1 {
			w.h.Retain()
		}
	}
	c.streams.mu.Unlock()
	if fresh {
		_ = c.send(&wire.AddRef{ID: w.h.id}) // where the connection is gone, every use of h says so
	}
	close(w.done)
}
