package client

import "sync"

// Unneeded collects the numbers of results that a task promised (wire.TaskSpec.Promises) and that nobody can
// ask for any more. Its methods are safe for concurrent use; of nil nothing ever comes.
type Unneeded struct {
	mu      sync.Mutex
	numbers []uint32      // guarded by mu
	ch      chan struct{} // capacity 1: numbers has become non-empty
}

// NewUnneeded makes a collection of a task that has promised something.
func NewUnneeded() *Unneeded { return &Unneeded{ch: make(chan struct{}, 1)} }

// Add takes what the owner tells. It does not block.
func (u *Unneeded) Add(numbers []uint32) {
	u.mu.Lock()
	u.numbers = append(u.numbers, numbers...)
	u.mu.Unlock()
	select {
	case u.ch <- struct{}{}:
	default:
	}
}

// Ready is signalled when Take has something to give.
func (u *Unneeded) Ready() <-chan struct{} {
	if u == nil {
		return nil
	}
	return u.ch
}

// Take gives what has come since the last call.
func (u *Unneeded) Take() []uint32 {
	u.mu.Lock()
	defer u.mu.Unlock()
	out := u.numbers
	u.numbers = nil
	return out
}
