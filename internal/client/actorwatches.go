package client

import (
	"context"
	"sync"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/internal/inbox"
	"mobula/wire"
)

// ActorWatch receives the state of an actor: first the present one, then each change. It does not keep the actor
// alive.
type ActorWatch struct {
	of    *actorWatches
	actor ids.ActorID
	news  *inbox.Inbox[wire.ActorNews]
}

// actorWatches has the watches of a client, by actor. The node is told of the first watch of an actor and of the end of the last one,
// under the outbox's lock, which comes before this one.
type actorWatches struct {
	*base
	outbox   *outbox
	straight *straight

	mu sync.Mutex
	of map[ids.ActorID]*watchedActor // guarded by mu
}

type watchedActor struct {
	last    wire.ActorNews // State 0: no news yet
	watches []*ActorWatch
	stop    bool // it was asked to end
}

// WatchActor begins to watch an actor, of this job or a named one of another.
func (t *actorWatches) WatchActor(actor ids.ActorID) (*ActorWatch, error) {
	if err := t.Err(); err != nil {
		return nil, err
	}
	w := &ActorWatch{of: t, actor: actor, news: inbox.New[wire.ActorNews]()}
	t.outbox.mu.Lock()
	defer t.outbox.mu.Unlock()
	if !t.add(w) {
		return w, nil
	}
	return w, t.outbox.sendLocked([]wire.Msg{&wire.WatchActor{Actor: actor}})
}

// add tells whether the watch is the first of its actor.
func (t *actorWatches) add(w *ActorWatch) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	a := t.of[w.actor]
	if a != nil {
		a.watches = append(a.watches, w)
		if a.last.State != wire.ActorUnspecified {
			w.news.Add(a.last)
		}
		return false
	}
	if t.of == nil {
		t.of = make(map[ids.ActorID]*watchedActor)
	}
	t.of[w.actor] = &watchedActor{watches: []*ActorWatch{w}}
	return true
}

// Close ends the watch.
func (w *ActorWatch) Close() {
	o := w.of.outbox
	o.mu.Lock()
	defer o.mu.Unlock()
	if w.of.drop(w) {
		_ = o.sendLocked([]wire.Msg{&wire.WatchActor{Actor: w.actor, Done: true}}) // if the connection is gone, so is the watch
	}
}

// drop tells whether the node must be told that nobody watches the actor any more.
func (t *actorWatches) drop(w *ActorWatch) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	a := t.of[w.actor]
	if a == nil {
		return false
	}
	for i, o := range a.watches {
		if o == w {
			a.watches = append(a.watches[:i], a.watches[i+1:]...)
			break
		}
	}
	if len(a.watches) > 0 {
		return false
	}
	delete(t.of, w.actor)
	return a.last.State != wire.ActorDead
}

// Next waits for news. The news of the actor's death is the last. A task that waits is reported as blocked meanwhile.
func (w *ActorWatch) Next(ctx context.Context) ([]wire.ActorNews, error) {
	if news := w.news.Take(); len(news) > 0 {
		return news, nil
	}
	w.of.waits()
	if tc := FromContext(ctx); tc != nil && tc.Blocker != nil {
		tc.Blocker.Blocked(ctx, nil)
		defer tc.Blocker.Unblocked(ctx)
	}
	for {
		select {
		case <-w.news.Ready():
		case <-ctx.Done():
			return nil, ctxError(ctx)
		case <-w.of.dead:
			return nil, w.of.cause
		}
		if news := w.news.Take(); len(news) > 0 {
			return news, nil
		}
	}
}

// actorNews passes the node's news on. It drops news that is known already: after a restart the node repeats it.
func (t *actorWatches) actorNews(m *wire.ActorNews) {
	t.mu.Lock()
	defer t.mu.Unlock()
	a := t.of[m.Actor]
	if a == nil || a.last.State == wire.ActorDead || a.last.State == m.State && a.last.Restarts == m.Restarts {
		return
	}
	a.last = *m
	for _, w := range a.watches {
		w.news.Add(*m)
	}
}

// watchAgainLocked tells a node that has restarted which actors are watched. The outbox's lock is held.
func (t *actorWatches) watchAgainLocked() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for id, a := range t.of {
		if a.last.State != wire.ActorDead {
			_ = t.outbox.writeLocked([]wire.Msg{&wire.WatchActor{Actor: id}}) // the next connection declares again
		}
	}
}

// StopActor ends an actor gracefully, and waits until it has ended. The error says why its close hook failed, or why that is
// not known.
func (t *actorWatches) StopActor(ctx context.Context, actor ids.ActorID) error {
	w, err := t.WatchActor(actor)
	if err != nil {
		return err
	}
	defer w.Close()
	if err := t.AskStop(actor); err != nil {
		return err
	}
	for {
		news, err := w.Next(ctx)
		if err != nil {
			return err
		}
		for _, n := range news {
			if n.State == wire.ActorDead {
				return closeError(n.Err)
			}
		}
	}
}

// AskStop asks for the graceful end of an actor, and does not wait for it. Calls that go straight, and were made before, are sent before it is.
func (t *actorWatches) AskStop(actor ids.ActorID) error {
	if t.straight.whenSent(actor, func() { _ = t.askStop(actor) }) { // where the connection is gone, so is the actor
		return nil
	}
	return t.askStop(actor)
}

func (t *actorWatches) askStop(actor ids.ActorID) error {
	t.outbox.mu.Lock()
	defer t.outbox.mu.Unlock()
	t.mu.Lock()
	if a := t.of[actor]; a != nil {
		a.stop = true
	}
	t.mu.Unlock()
	return t.outbox.sendLocked([]wire.Msg{&wire.KillActor{Actor: actor, Stop: true}})
}

// stopAgainLocked asks a node again to end the actors whose end somebody waits for: the request may have been lost with the
// connection. The outbox's lock is held.
func (t *actorWatches) stopAgainLocked() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for id, a := range t.of {
		if a.stop && a.last.State != wire.ActorDead {
			_ = t.outbox.writeLocked([]wire.Msg{&wire.KillActor{Actor: id, Stop: true}}) // the next connection declares again
		}
	}
}

// closeError is the error of the close hook of a stopped actor; nil if the hook succeeded or the actor ended otherwise.
func closeError(err *errs.Error) error {
	if err == nil || err.Code != errs.CodeActorDied || len(err.Cause) != 1 {
		return nil
	}
	if c := err.Cause[0]; c.Code == errs.CodeTaskFailed || c.Code == errs.CodeDeadline {
		return c
	}
	return nil
}
