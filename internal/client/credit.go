package client

import (
	"context"
	"sync"
	"sync/atomic"
)

// credit bounds the bytes of submits and inline puts that the owner has not handled yet. Until the owner's first
// grant, which is the whole window, there is no bound. A sender may go whenever credit is above zero, so a single
// message larger than the window still passes.
type credit struct {
	*base
	on     atomic.Bool
	left   atomic.Int64
	window atomic.Int64 // the largest grant; changed with mu held

	mu   sync.Mutex
	wake chan struct{} // guarded by mu; closed when credit comes; nil: nobody waits
}

// add takes a grant. The credit never exceeds the window: after a restart of the owner some bytes are granted
// twice.
func (c *credit) add(n int64) {
	if n <= 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.window.Store(max(c.window.Load(), n))
	c.fillLocked(n)
}

// unhandled is how many bytes of the last messages the owner may not have handled.
func (c *credit) unhandled() int64 {
	if !c.on.Load() {
		return 0
	}
	return c.window.Load() - c.left.Load()
}

// owe resets the credit for a node that has started again and gets so many bytes once more, which it grants as it handles them. It grants a whole window
// first.
func (c *credit) owe(bytes int64) {
	if c.on.Load() {
		c.left.Store(-bytes)
	}
}

// refill resets the credit to the whole window: the owner has restarted and does not remember which bytes it still
// had to grant.
func (c *credit) refill() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if window := c.window.Load(); window > 0 {
		c.fillLocked(window - min(0, c.left.Load()))
	}
}

func (c *credit) fillLocked(n int64) {
	for {
		left := c.left.Load()
		if c.left.CompareAndSwap(left, min(left+n, c.window.Load())) {
			break
		}
	}
	c.on.Store(true)
	if c.wake != nil {
		close(c.wake)
		c.wake = nil
	}
}

func (c *credit) take(n int64) bool {
	if !c.on.Load() {
		return true
	}
	for {
		left := c.left.Load()
		if left <= 0 {
			return false
		}
		if c.left.CompareAndSwap(left, left-n) {
			return true
		}
	}
}

// admit waits until n more bytes may be under way.
func (c *credit) admit(ctx context.Context, tc *TaskContext, n int64) error {
	if c.take(n) {
		return nil
	}
	c.waits()
	if tc.Blocker != nil {
		tc.Blocker.Blocked(ctx, nil)
		defer tc.Blocker.Unblocked(ctx)
	}
	for {
		c.mu.Lock()
		if c.take(n) {
			c.mu.Unlock()
			return nil
		}
		if c.wake == nil {
			c.wake = make(chan struct{})
		}
		wake := c.wake
		c.mu.Unlock()
		select {
		case <-wake:
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-c.dead:
			return c.cause
		}
	}
}
