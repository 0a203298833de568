package worker

import (
	"context"
	"sync/atomic"
	"time"

	"mobula/internal/client"
	"mobula/internal/errs"
)

// taskCtx is a task's context. It makes a standard cancellable context, and the timer of a deadline, only when
// code asks for Done or derives from it, when the task is cancelled, or when the deadline has passed. Most short
// tasks never need them.
type taskCtx struct {
	cfg      *Config // Base is its parent
	tc       *client.TaskContext
	deadline int64 // by the node's clock; 0: none

	inner atomic.Pointer[innerCtx]     // cfg.returned, of a call that has returned without one
	waits atomic.Pointer[client.Token] // of the one who is given a token at the end; nil: nobody
}

type innerCtx struct {
	context.Context
	cancel context.CancelCauseFunc
	stop   context.CancelFunc // of the deadline's timer; may be nil
}

// errReturned is the cause of a context whose task has returned.
var errReturned = errs.New(errs.CodeCancelled, "the task has returned: its context is over")

func (t *taskCtx) std() *innerCtx {
	if in := t.inner.Load(); in != nil {
		return in
	}
	in := new(innerCtx)
	in.Context, in.cancel = context.WithCancelCause(t.cfg.Base)
	if t.deadline != 0 {
		in.Context, in.stop = context.WithDeadlineCause(in.Context, t.tc.Client.Instant(t.deadline),
			&errs.Error{Code: errs.CodeDeadline, Msg: "the task's deadline passed while it ran", Task: t.tc.Task.String()})
	}
	if !t.inner.CompareAndSwap(nil, in) { // somebody was faster, or the call has returned
		in.end()
		return t.inner.Load()
	}
	return in
}

func (in *innerCtx) end() {
	in.cancel(errReturned)
	if in.stop != nil {
		in.stop()
	}
}

// returned is what a context of the parent is whose task has returned.
func returned(parent context.Context) *innerCtx {
	in := new(innerCtx)
	in.Context, in.cancel = context.WithCancelCause(parent)
	in.end()
	return in
}

// Done is closed when the task is cancelled, runs past its deadline or has returned.
func (t *taskCtx) Done() <-chan struct{} { return t.std().Done() }

// Deadline is the task's own or its base's.
func (t *taskCtx) Deadline() (time.Time, bool) {
	if in := t.inner.Load(); in != nil && in != t.cfg.returned {
		return in.Deadline()
	}
	at, ok := t.cfg.Base.Deadline()
	if t.deadline != 0 {
		if own := t.tc.Client.Instant(t.deadline); !ok || own.Before(at) {
			return own, true
		}
	}
	return at, ok
}

// Err tells whether the context is over.
func (t *taskCtx) Err() error {
	if in := t.inner.Load(); in != nil {
		return in.Err()
	}
	if err := t.cfg.Base.Err(); err != nil || t.deadline == 0 || t.tc.Client.Now() < t.deadline {
		return err
	}
	return t.std().Err()
}

// Value gives the task for TaskKey. For other keys it asks the standard context, if there is one, so that
// context.Cause and derived contexts find that, else the base.
func (t *taskCtx) Value(key any) any {
	if key == client.TaskKey {
		return t.tc
	}
	if in := t.inner.Load(); in != nil {
		return in.Value(key)
	}
	return t.cfg.Base.Value(key)
}

// Gives implements client.Giver, for one at a time, where no timer ends the context.
func (t *taskCtx) Gives(w *client.Token) (base <-chan struct{}, ok bool) {
	if t.deadline != 0 || t.inner.Load() != nil || !t.waits.CompareAndSwap(nil, w) {
		return nil, false
	}
	if t.inner.Load() != nil { // who ends it may have looked before
		t.waits.Store(nil)
		return nil, false
	}
	return t.cfg.Base.Done(), true
}

// GivesNoMore implements client.Giver. A token may still be on its way.
func (t *taskCtx) GivesNoMore() { t.waits.Store(nil) }

func (t *taskCtx) give() {
	if w := t.waits.Load(); w != nil {
		w.Give()
	}
}

// cancel ends the context for a reason.
func (t *taskCtx) cancel(cause error) {
	t.std().cancel(cause)
	t.give()
}

// cause is why the context has ended; nil while it has not. It does not make the standard context.
func (t *taskCtx) cause() error {
	in := t.inner.Load()
	if in == nil {
		if t.cfg.Base.Err() != nil {
			return context.Cause(t.cfg.Base)
		}
		return nil
	}
	return context.Cause(in)
}

// end ends the contexts derived from this one, after the call.
func (t *taskCtx) end() {
	if !t.inner.CompareAndSwap(nil, t.cfg.returned) {
		t.inner.Load().end()
	}
	t.give()
}
