package node

import (
	"sync"

	"mobula/wire"
)

// outlet is the way to one client. Push queues a message, in order; Flush lets what is
// queued go. Neither blocks, and both may be called from several goroutines.
type outlet interface {
	Push(m wire.Msg)
	Flush()
	Close()
}

// receipt is called in its turn among a client's messages, when those before it are on their way and no more than the soft
// backlog waits to be written. A client that is gone has it called never.
type receipt func()

// Kind is none: it is not sent.
func (receipt) Kind() wire.Kind { return 0 }

// local is the outlet to a client in this process: its batches are delivered by whoever
// flushes first; another who flushes meanwhile leaves its messages to the first.
type local struct {
	deliver func([]wire.Msg)

	mu      sync.Mutex
	pending []wire.Msg // guarded by mu
	spare   []wire.Msg // guarded by mu
	busy    bool       // guarded by mu
	closed  bool       // guarded by mu
}

func (l *local) Push(m wire.Msg) {
	l.mu.Lock()
	l.pending = append(l.pending, m)
	l.mu.Unlock()
}

func (l *local) Flush() {
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
				l.deliver(batch[i:n])
			}
			if i = n + 1; n < len(batch) {
				batch[n].(receipt)()
			}
		}
		clear(batch)
		l.mu.Lock()
		l.spare = batch
	}
	l.busy = false
}

func (l *local) Close() {
	l.mu.Lock()
	l.closed = true
	l.pending = nil
	l.mu.Unlock()
}

func isReceipt(m wire.Msg) bool {
	_, ok := m.(receipt)
	return ok
}
