package inbox

import "sync"

// Inbox is a list that is taken as a whole. Its methods are safe for concurrent use; a nil Inbox is always empty.
type Inbox[T any] struct {
	mu    sync.Mutex
	items []T           // guarded by mu
	ready chan struct{} // capacity 1: items has become non-empty
}

// New makes an empty one.
func New[T any]() *Inbox[T] { return &Inbox[T]{ready: make(chan struct{}, 1)} }

// Add appends.
func (b *Inbox[T]) Add(items ...T) {
	b.mu.Lock()
	b.items = append(b.items, items...)
	b.mu.Unlock()
	select {
	case b.ready <- struct{}{}:
	default: // it was signalled already
	}
}

// Ready is signalled when Take has something to give.
func (b *Inbox[T]) Ready() <-chan struct{} {
	if b == nil {
		return nil
	}
	return b.ready
}

// Take gives the items added since the last call, in order.
func (b *Inbox[T]) Take() []T {
	b.mu.Lock()
	defer b.mu.Unlock()
	out := b.items
	b.items = nil
	return out
}
