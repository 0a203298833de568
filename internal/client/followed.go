package client

import (
	"context"
	"errors"
	"sync"

	"mobula/internal/ids"
	"mobula/wire"
)

// followed are the tasks that end with the context of their call, by that context's Done channel: contexts that differ only in
// values share one. A call costs an append. Tasks that have ended are removed when a list has doubled, so a result that arrives
// or a reference that is released costs nothing here.
type followed struct {
	*base
	straight *straight
	streams  *streams

	mu      sync.Mutex
	by      map[<-chan struct{}]*follower // guarded by mu
	last    *follower                     // guarded by mu
	sweepAt int                           // followers from which those without a task are dropped; guarded by mu
}

// follower has the tasks that end with one context.
type follower struct {
	t    *followed
	ctx  context.Context
	own  context.Context // context of the task that made the calls; see TaskContext.Own
	stop func() bool

	handles []*Handle    // of results; guarded by followed.mu
	streams []ids.TaskID // guarded by followed.mu
	sweepAt int          // guarded by followed.mu
}

const followSweep = 64 // the length from which a list is swept

// Follows tells whether a task that tc calls with ctx should end with it: ctx can end, and is not the one that the runtime
// gave.
func (tc *TaskContext) Follows(ctx context.Context) bool {
	if ctx == tc.Own {
		return false
	}
	done := ctx.Done()
	return done != nil && (tc.Own == nil || tc.Own.Done() != done)
}

// Cancelled is the cause of ctx if it has ended and the tasks that tc has called with it should end too; else nil. A deadline
// does not count: the node knows it and ends the tasks itself. Nor does the end of the task tc, which ends every context derived
// from its own.
func (tc *TaskContext) Cancelled(ctx context.Context) error { return cancelledBy(ctx, tc.Own) }

func cancelledBy(ctx, own context.Context) error {
	err := ctx.Err()
	if err == nil {
		return nil
	}
	if _, ok := ctx.Deadline(); ok && errors.Is(err, context.DeadlineExceeded) {
		return nil
	}
	cause := context.Cause(ctx)
	if own != nil && own.Err() != nil && cause == context.Cause(own) { //nolint:errorlint // identity is meant
		return nil
	}
	return cause
}

// Follow registers a task that was submitted with ctx. If ctx is cancelled before the result is known here or its last handle is
// released, the task is cancelled, with what it has submitted. hs are its handles, none for a stream.
func (t *followed) Follow(ctx context.Context, tc *TaskContext, task ids.TaskID, hs []*Handle) {
	done := ctx.Done()
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.Err() != nil {
		return
	}
	f := t.last
	if f == nil || f.ctx.Done() != done {
		if f = t.by[done]; f == nil {
			f = t.add(ctx, done)
			f.own = tc.Own
		}
		t.last = f
	}
	if len(hs) == 0 {
		f.streams = append(f.streams, task)
	} else {
		f.handles = append(f.handles, hs...)
	}
	if len(f.handles)+len(f.streams) >= f.sweepAt {
		f.sweep()
	}
}

// add makes the follower of a context. The lock is held.
func (t *followed) add(ctx context.Context, done <-chan struct{}) *follower {
	if t.by == nil {
		t.by = make(map[<-chan struct{}]*follower)
	}
	if len(t.by) >= max(t.sweepAt, followSweep) {
		for d, f := range t.by {
			if f.sweep() == 0 {
				f.stop()
				delete(t.by, d)
			}
		}
		t.last, t.sweepAt = nil, 2*len(t.by)
	}
	f := &follower{t: t, ctx: ctx, sweepAt: followSweep}
	t.by[done] = f
	f.stop = context.AfterFunc(ctx, f.ended) // ended waits for the lock
	return f
}

// sweep drops tasks that have ended, and tells how many are left. The lock is held.
func (f *follower) sweep() int {
	handles := f.handles[:0]
	for _, h := range f.handles {
		if h.awaited() {
			handles = append(handles, h)
		}
	}
	clear(f.handles[len(handles):])
	f.handles = handles
	streams := f.streams[:0]
	for _, s := range f.streams {
		if f.t.streams.reads(s) {
			streams = append(streams, s)
		}
	}
	f.streams = streams
	left := len(handles) + len(streams)
	f.sweepAt = max(2*left, followSweep)
	if cap(handles) > 4*f.sweepAt { // free the memory of a burst
		f.handles = append(make([]*Handle, 0, f.sweepAt), handles...)
	}
	return left
}

// ended cancels the remaining tasks when the context has ended.
func (f *follower) ended() {
	t := f.t
	if !t.enter() {
		return
	}
	defer t.tasks.Done()
	t.mu.Lock()
	f.sweep()
	handles, streams := f.handles, f.streams
	f.handles, f.streams = nil, nil
	if t.by[f.ctx.Done()] == f { // else it was swept meanwhile
		delete(t.by, f.ctx.Done())
	}
	if t.last == f {
		t.last = nil
	}
	t.mu.Unlock()
	if cancelledBy(f.ctx, f.own) == nil {
		return
	}
	var told ids.TaskID
	for _, h := range handles {
		if h.id.Task != told { // else it is another result of the same task
			told = h.id.Task
			_ = t.straight.cancel(wire.Cancel{Task: told, Recursive: true}) // if the connection is gone, so is the job
		}
	}
	for _, task := range streams {
		_ = t.straight.cancel(wire.Cancel{Task: task, Recursive: true})
	}
}

// close lets contexts hold the client no longer.
func (t *followed) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, f := range t.by {
		f.stop()
	}
	t.by, t.last = nil, nil
}
