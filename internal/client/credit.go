package client

import (
	"context"
	"sync"
	"sync/atomic"
)

// credit bounds the bytes of submits and inline puts that the owner has not handled yet. Until the owner's first
// grant, which is the whole window, there is no bound. A sender may go whenever credit is above zero, so a single
// message larger than the window still passes.
//
// An owner that has restarted does not remember what it still had to grant, and has handled nothing yet of what came since it was lost. It asks the client
// for its holdings. When it has handled those, and with them all that was sent before, it says so by a grant of nothing.
type credit struct {
	*base
	on     atomic.Bool
	left   atomic.Int64
	window atomic.Int64 // the largest grant; changed with mu held

	sent    atomic.Int64 // bytes that were put into the replay queue; changed with outbox.mu held
	handled atomic.Int64 // the first of them, which the owner has handled for certain; changed with mu held

	mu    sync.Mutex
	wake  chan struct{} // guarded by mu; closed when credit comes; nil: nobody waits
	owner ownerState    // guarded by mu
	asked int64         // guarded by mu: of sent, what went before the holdings
}

// ownerState is what a client knows of an owner that has restarted.
type ownerState uint8

const (
	ownerAtWork  ownerState = iota
	ownerUnknown            // the node has started again, and it has not asked for the holdings yet
	ownerAsked              // it was told the holdings, and has not handled them yet
)

// add takes a grant; one of nothing says that the owner has handled the holdings. The credit never exceeds the window: after a restart of the owner some
// bytes are granted twice.
func (c *credit) add(n int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	window := c.window.Load()
	if n <= 0 {
		if c.owner == ownerAsked {
			c.settleLocked(window)
		}
		return
	}
	if window > 0 && c.owner == ownerAtWork { // the first grant is of a window, and others may be of an owner that is lost
		c.handled.Store(min(c.handled.Load()+n, c.sent.Load()))
	}
	c.window.Store(max(window, n))
	c.fillLocked(n)
}

// settleLocked counts as under way what was sent after the holdings, and no more.
func (c *credit) settleLocked(window int64) {
	c.owner = ownerAtWork
	c.handled.Store(c.asked)
	if window > 0 {
		c.left.Store(window - (c.sent.Load() - c.asked))
		c.fillLocked(0)
	}
}

// unhandled is how many bytes of the last messages of the replay queue the owner may not have handled.
func (c *credit) unhandled() int64 {
	if !c.on.Load() {
		return 0
	}
	return c.sent.Load() - c.handled.Load()
}

// owe notes that the node has started again and gets the last so many bytes once more. They are under way until its owner has settled. The outbox's lock is
// held.
func (c *credit) owe(bytes int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.owner = ownerUnknown
	c.handled.Store(c.sent.Load() - bytes)
	if c.on.Load() {
		c.left.Store(-bytes)
	}
}

// declares notes that the owner's holdings are the next message to be sent. The outbox's lock is held.
func (c *credit) declares() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.owner, c.asked = ownerAsked, c.sent.Load()
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
