package worker

import (
	"context"
	"errors"
	"io"
	"runtime"
	"runtime/debug"
	"time"

	"mobula/internal/client"
	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/wire"
)

// An actor's end but for a panic (panic.go). After a kill, waiting calls fail, running ones are cancelled, and the close hook is not called. A close calls
// the hook once no call runs any more, and reports that to the node.

// ctxCloser and io.Closer are the close hooks.
type ctxCloser interface{ Close(context.Context) error }

func (e *Executor) stopActor(m *wire.StopActor) {
	if !m.Close {
		e.dropActor(m.Actor, m.Restarts)
		return
	}
	e.mu.Lock()
	a := e.actors[m.Actor]
	e.mu.Unlock()
	if a == nil || !a.made.Load() { // it has ended before, or was never constructed
		e.dropActor(m.Actor, false)
		e.send(&wire.ActorStopped{Actor: m.Actor})
		return
	}
	a.end()
	if !m.Drain {
		a.cancel(e)
	} else if h := a.hosted.Load(); h != nil {
		h.drain()
	}
	if a.closing.Swap(true) {
		return // the goroutine that closes it reports
	}
	e.spawn(func() { e.closeActor(a, m.Drain) })
}

// closeActor waits for an actor's calls, closes it, and reports that.
func (e *Executor) closeActor(a *actor, drain bool) {
	ctx, cancel := context.WithCancel(context.Background())
	if !drain {
		ctx, cancel = context.WithTimeout(ctx, e.cfg.StopGrace)
	}
	defer cancel()
	var err *errs.Error
	var keep any
	for _, l := range a.lanes {
		if !l.settle(ctx) {
			err = stillRan(e.cfg.StopGrace)
		}
	}
	if h := a.hosted.Load(); h != nil && !h.settle(ctx) {
		err = stillRan(e.cfg.StopGrace)
	}
	if e.isClosing() || a.killed.Load() {
		return // Close closes it, or nobody does
	}
	if err == nil {
		err, keep = e.closeInstance(a)
	}
	e.forget(a)
	for _, l := range a.lanes {
		l.close()
	}
	e.send(&wire.ActorStopped{Actor: a.id, Err: err})
	runtime.KeepAlive(keep)
}

func stillRan(grace time.Duration) *errs.Error {
	return errs.New(errs.CodeDeadline, "calls of it still ran %v after their context had ended: it was not closed", grace)
}

// end lets the actor take no more calls, and ends its timers.
func (a *actor) end() {
	a.stopped.Store(true)
	a.over.Do(func() { close(a.life) })
}

// instanceOf is the instance of an actor that is being constructed.
func (e *Executor) instanceOf(id ids.ActorID) *client.Hosted {
	e.mu.Lock()
	defer e.mu.Unlock()
	if a := e.actors[id]; a != nil {
		return a.at
	}
	return nil
}

func (e *Executor) forget(a *actor) {
	e.mu.Lock()
	if e.actors[a.id] == a {
		delete(e.actors, a.id)
	}
	e.mu.Unlock()
	if h := a.hosted.Load(); h != nil {
		e.unhost(h)
	}
}

// dropActor ends an instance without its close hook: queued calls fail, running ones are cancelled.
func (e *Executor) dropActor(id ids.ActorID, restarts bool) {
	why := errs.New(errs.CodeActorDied, "actor %v was killed", id)
	if restarts {
		why = errs.New(errs.CodeActorUnavailable, "actor %v was killed, to restart", id)
	}
	a := e.removeActor(id, why)
	if a == nil {
		return
	}
	if h := a.hosted.Load(); h != nil {
		h.stop(why)
		e.unhost(h)
		return
	}
	for _, l := range a.lanes {
		l.cancelAll(why)
	}
	e.spawn(func() {
		for _, l := range a.lanes {
			l.settle(context.Background())
		}
		for _, l := range a.lanes {
			l.close()
		}
	})
}

// cancel fails the waiting calls of an actor that ends, and cancels its running ones.
func (a *actor) cancel(e *Executor) {
	why := errs.New(errs.CodeActorDied, "actor %v was stopped", a.id)
	a.refuseAll(e, why)
	for _, l := range a.lanes {
		l.cancelAll(why)
	}
	if h := a.hosted.Load(); h != nil {
		h.stop(why)
	}
}

func (a *actor) refuseAll(e *Executor, why *errs.Error) {
	for _, l := range a.lanes {
		for _, it := range l.takeItems() {
			e.refuse(&it.t, it.lease, it.received, why)
		}
	}
}

// removeActor removes an actor and fails the calls that wait in its mailboxes.
func (e *Executor) removeActor(id ids.ActorID, why *errs.Error) *actor {
	e.mu.Lock()
	a := e.actors[id]
	delete(e.actors, id)
	e.mu.Unlock()
	if a == nil {
		return nil
	}
	a.end()
	a.killed.Store(true)
	a.refuseAll(e, why)
	return a
}

// closeInstance calls the close hook of an instance, if it has one, once. Its error is ErrTaskFailed with what the hook returned or
// panicked with, or ErrDeadline if the hook did not return within the grace and was left behind. The references in the error keep their
// objects until it is reported, if keep is kept.
func (e *Executor) closeInstance(a *actor) (err *errs.Error, keep any) {
	a.once.Do(func() {
		var hook func(context.Context) error
		switch i := a.instance.(type) {
		case ctxCloser:
			hook = i.Close
		case io.Closer:
			hook = func(context.Context) error { return i.Close() }
		default:
			return
		}
		tc := &client.TaskContext{Client: e.c, Task: ids.Derive(ids.TaskID(a.id), closeCall)}
		ctx, cancel := context.WithTimeout(client.WithTask(context.WithoutCancel(e.cfg.Base), tc), e.cfg.StopGrace)
		defer cancel()
		tc.Own = ctx // calls that the hook makes and does not wait for go on
		type end struct {
			err  *errs.Error
			keep any
		}
		done := make(chan end, 1)
		go func() {
			defer close(done)
			debug.SetPanicOnFault(true) // as in a call: a write to a read-only value is the hook's failure, and not the process' end
			name := a.name + ".Close"
			normal := false
			defer func() {
				if !normal {
					p := recover()
					done <- end{panicked(name, a.id.String(), p), p}
				}
			}()
			err := hook(ctx)
			normal = true
			if err != nil {
				done <- end{&errs.Error{Code: errs.CodeTaskFailed, Name: name, Task: a.id.String(), Msg: name + ": " + errs.Text(err), Cause: []*errs.Error{errs.From(err).Bare()}}, err}
			}
		}()
		timer := time.NewTimer(e.cfg.StopGrace + e.cfg.StopGrace/4) // a hook that watches its context gets a little more time
		defer timer.Stop()
		select {
		case x := <-done:
			err, keep = x.err, x.keep
		case <-timer.C:
			err = errs.New(errs.CodeDeadline, "it did not return within %v", e.cfg.StopGrace)
		}
		if err != nil {
			e.log.Error("an actor's close failed", "actor", a.id, "type", a.name, "err", err)
		}
	})
	return err, keep
}

// closeCall numbers the close hook among what an actor's creation submits.
const closeCall = 1 << 62

// restWait bounds the wait for the last messages of a node that has closed the connection.
const restWait = 2 * time.Second

// nodeGone decides, after the connection has ended, whether actors are closed. A report may have failed before the node's last messages were
// read, so it waits for rest, which is closed when they are. Without a goodbye the node was killed: other instances may live already, and none
// here is closed.
func (e *Executor) nodeGone(rest <-chan struct{}) {
	if errors.Is(e.c.Err(), errs.ErrShutdown) {
		return
	}
	timer := time.NewTimer(restWait)
	defer timer.Stop()
	select {
	case <-rest:
	case <-timer.C:
	}
	e.lost.Store(!e.goodbye.Load())
}

// closes tells whether Close has actors to close.
func (e *Executor) closes() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return !e.lost.Load() && len(e.actors) > 0
}
