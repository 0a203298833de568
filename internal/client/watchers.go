package client

import (
	"context"
	"sync"

	"mobula/wire"
)

// watchers makes watchers, and rooms, which use them.
type watchers struct {
	*base
	handles  *handles
	outbox   *outbox
	credit   *credit
	gets     *gets
	straight *straight
	rooms    *rooms
}

// Watcher is told when objects are resolved. It watches any number of objects without a goroutine for each, and
// does not fetch stored ones. Its methods are safe for concurrent use.
type Watcher struct {
	ws    *watchers
	owner any // lives as long as something is watched

	mu    sync.Mutex
	nodes map[int]*waitNode // guarded by mu: under way, by token
	ready []Watched         // guarded by mu
	ch    chan struct{}     // capacity 1: ready has become non-empty
}

// Watched is an object that was resolved: inline, stored or with an error.
type Watched struct {
	Token  int
	Result *wire.Result
}

// NewWatcher makes a watcher.
func (ws *watchers) NewWatcher() *Watcher {
	return &Watcher{ws: ws, nodes: make(map[int]*waitNode), ch: make(chan struct{}, 1)}
}

// Submit is Client.Submit of a task that is not a stream; it watches the first return, under a token that is not in
// use.
func (w *Watcher) Submit(ctx context.Context, spec *wire.TaskSpec, token int) ([]*Handle, error) {
	credit := w.ws.credit
	if err := w.ws.Err(); err != nil {
		return nil, err
	}
	if credit.on.Load() {
		if err := credit.admit(ctx, w.ws.task(ctx), wire.CostOfSpec(spec)); err != nil {
			return nil, err
		}
	}
	w.ws.straight.maker(w.ws.task(ctx))
	hs := w.ws.handles.returns(spec)
	if err := w.submit(hs[0], spec, token); err != nil {
		w.Forget(token)
		for _, h := range hs {
			h.Release()
		}
		return nil, err
	}
	return hs, nil
}

// submit begins to watch the result as the task is sent. The outbox's lock keeps the list of what is asked for, which an owner that is made
// anew gets, from naming a task that it has not heard of: it would answer that the result was freed.
func (w *Watcher) submit(h *Handle, spec *wire.TaskSpec, token int) error {
	o := w.ws.outbox
	o.mu.Lock()
	defer o.mu.Unlock()
	ask, err := w.add(h, token)
	if err != nil {
		return err
	}
	msgs := []wire.Msg{&wire.Submit{Spec: spec}, &wire.Get{ID: h.id}}
	if !ask { // the task runs again, and this process knows the result already
		msgs = msgs[:1]
	}
	return o.sendLocked(msgs)
}

// Watch watches objects; the token of each is its index.
func (w *Watcher) Watch(hs []*Handle) error {
	gets := make([]wire.Get, 0, len(hs))
	var err error
	for i, h := range hs {
		var ask bool
		if ask, err = w.add(h, i); err != nil {
			break
		}
		if ask {
			gets = append(gets, wire.Get{ID: h.id})
		}
	}
	if asked := w.ws.outbox.ask(gets); err == nil {
		err = asked
	}
	return err
}

// add begins to watch an object; ask tells that a Get must be sent.
func (w *Watcher) add(h *Handle, token int) (ask bool, err error) {
	n := &waitNode{watcher: w, h: h, i: token}
	w.mu.Lock()
	w.nodes[token] = n
	w.mu.Unlock()
	return w.ws.gets.link(n)
}

// Wait waits until Take has something to give. Its error says that ctx or the client has ended. The task is reported as blocked
// meanwhile.
func (w *Watcher) Wait(ctx context.Context) error {
	select {
	case <-w.ch:
		return nil
	default:
	}
	w.ws.waits()
	if tc := FromContext(ctx); tc != nil && tc.Blocker != nil {
		tc.Blocker.Blocked(ctx, nil)
		defer tc.Blocker.Unblocked(ctx)
	}
	select {
	case <-w.ch:
		return nil
	case <-ctx.Done():
		return ctxError(ctx)
	case <-w.ws.dead:
		return w.ws.cause
	}
}

// Forget ends the watch of an object; Take still gives a result that has come already.
func (w *Watcher) Forget(token int) {
	w.mu.Lock()
	n := w.nodes[token]
	delete(w.nodes, token)
	w.mu.Unlock()
	if n == nil {
		return
	}
	s := w.ws.handles.table.shard(&n.h.id)
	s.mu.Lock()
	defer s.mu.Unlock()
	for p := &n.h.wait; *p != nil; p = &(*p).next {
		if *p == n {
			*p = n.next
			return
		}
	}
}

// Ready is signalled when Take has something to give.
func (w *Watcher) Ready() <-chan struct{} { return w.ch }

// Take appends what was resolved since the last call.
func (w *Watcher) Take(buf []Watched) []Watched {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, x := range w.ready {
		delete(w.nodes, x.Token)
	}
	buf = append(buf, w.ready...)
	clear(w.ready)
	w.ready = w.ready[:0]
	return buf
}

// resolved is called under the shard's lock.
func (w *Watcher) resolved(token int, r *wire.Result) {
	w.mu.Lock()
	w.ready = append(w.ready, Watched{token, r})
	first := len(w.ready) == 1
	w.mu.Unlock()
	if !first {
		return
	}
	select {
	case w.ch <- struct{}{}:
	default:
	}
}
