package worker

import (
	"context"

	"mobula/internal/errs"
)

// takeItems empties the queue.
func (l *lane) takeItems() []item {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := append([]item(nil), l.queue[l.head:]...)
	clear(l.queue)
	l.queue, l.head = l.queue[:0], 0
	return out
}

// cancelAll cancels the contexts of running calls.
func (l *lane) cancelAll(why *errs.Error) {
	l.mu.Lock()
	calls := append([]*call(nil), l.calls...)
	l.mu.Unlock()
	for _, cl := range calls {
		cl.ctx.cancel(why)
	}
}

// settle waits until the lane has no waiting or running call, ctx ends or the executor closes. It tells whether the
// lane has none.
func (l *lane) settle(ctx context.Context) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.head < len(l.queue) || len(l.calls) > 0 {
		if l.e.isClosing() || ctx.Err() != nil {
			return false
		}
		if l.quiet == nil {
			l.quiet = make(chan struct{})
		}
		quiet := l.quiet
		l.mu.Unlock()
		select {
		case <-quiet:
		case <-l.e.quit:
		case <-ctx.Done():
		}
		l.mu.Lock()
	}
	return true
}

func (e *Executor) isClosing() bool {
	select {
	case <-e.quit:
		return true
	default:
		return false
	}
}
