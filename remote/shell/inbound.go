package shell

import (
	"runtime/debug"
	"sync"

	"mobula/remote"
)

// item is what a handler is to be called with: a message, or a notice.
type item struct {
	from    remote.Life
	payload []byte // lies in the buffer of the connection that it came on
	notice  remote.Notice
}

// inbound is what the core has delivered and no handler was called with yet. Whoever has the turn calls the handlers, for all that is there, in order.
// A connection's reader takes the turn before its messages are stepped, and keeps it until they are handled: so messages lie in its buffer until then,
// and only one connection at a time has any.
type inbound struct {
	turn chan struct{} // of capacity 1: full while somebody has the turn

	mu      sync.Mutex
	items   []item // guarded by mu
	spare   []item // guarded by mu: the slice that is filled next
	telling bool   // guarded by mu: a goroutine is about to take the turn
}

// take gives what is there, first to last. done has the slice used again.
func (q *inbound) take() []item {
	q.mu.Lock()
	defer q.mu.Unlock()
	out := q.items
	q.items, q.spare, q.telling = q.spare, nil, false
	return out
}

func (q *inbound) done(items []item) {
	clear(items)
	q.mu.Lock()
	defer q.mu.Unlock()
	q.spare = items[:0]
}

// add appends items. It tells whether a goroutine is to be started for them, since there are some that no reader waits for.
func (q *inbound) add(items []item, reader bool) (tell bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.items = append(q.items, items...)
	tell = !reader && !q.telling
	q.telling = q.telling || tell
	return tell
}

// tell calls the handlers for notices that did not come with a reader's messages.
func (p *peer) tell() {
	select {
	case p.in.turn <- struct{}{}:
		p.handle()
		<-p.in.turn
	case <-p.hub.ctx.Done():
	}
}

// handle calls the handlers for all that is there. The caller has the turn.
func (p *peer) handle() {
	for {
		items := p.in.take()
		if len(items) == 0 {
			return
		}
		for rest := items; len(rest) > 0; {
			rest = rest[p.call(rest):]
		}
		p.in.done(items)
	}
}

// call calls the handlers for items in order, up to the last, or to one that panics. It gives how many these were.
func (p *peer) call(items []item) (n int) {
	defer func() {
		if v := recover(); v != nil {
			p.hub.log.Error("remote: a handler panicked, what it was handed is lost", "node", p.home, "panic", v, "stack", string(debug.Stack()))
		}
	}()
	for i := range items {
		n++
		if it := &items[i]; it.notice != nil {
			p.hub.cfg.Notice(p.home, it.notice)
		} else {
			p.hub.cfg.Deliver(it.from, it.payload)
		}
	}
	return n
}
