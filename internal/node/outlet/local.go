package outlet

import (
	"sync"

	"mobula/wire"
)

// Local is the outlet to a client in this process: its batches are delivered by whoever
// flushes first; another who flushes meanwhile leaves its messages to the first.
type Local struct {
	Deliver func([]wire.Msg) // set before the first Flush

	mu      sync.Mutex
	pending []wire.Msg // guarded by mu
	spare   []wire.Msg // guarded by mu
	busy    bool       // guarded by mu
	closed  bool       // guarded by mu
}

// Push is Outlet's.
func (l *Local) Push(m wire.Msg) {
	l.mu.Lock()
	l.pending = append(l.pending, m)
	l.mu.Unlock()
}

// Flush is Outlet's.
func (l *Local) Flush() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.busy {
		return
	}
	l.busy = true
	for len(l.pending) > 0 && !l.closed {
		batch := l.pending
		l.pending = l.spare[:0]
		l.mu.Unlock()
		for i := 0; i < len(batch); {
			n := i
			for n < len(batch) && !isReceipt(batch[n]) {
				n++
			}
			if n > i {
				l.Deliver(batch[i:n])
			}
			if i = n + 1; n < len(batch) {
				batch[n].(Receipt)()
			}
		}
		clear(batch)
		l.mu.Lock()
		l.spare = batch
	}
	l.busy = false
}

// Close is Outlet's.
func (l *Local) Close() {
	l.mu.Lock()
	l.closed = true
	l.pending = nil
	l.mu.Unlock()
}
