package client

import (
	"context"
	"sync"
	"sync/atomic"

	"mobula/wire"
)

// credit bounds the bytes of submits and inline puts that the owner has not worked
// through. It is without bound until the owner grants some for the first time. Whoever
// finds it above zero may go, so a single message larger than the grant still passes.
type credit struct {
	on   atomic.Bool
	left atomic.Int64

	mu   sync.Mutex
	wake chan struct{} // guarded by mu; closed when credit comes; nil: nobody waits
}

func (c *credit) add(n int64) {
	c.left.Add(n)
	c.on.Store(true)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.wake != nil && c.left.Load() > 0 {
		close(c.wake)
		c.wake = nil
	}
}

// reset forgets the grants of a connection that is gone.
func (c *credit) reset() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.on.Store(false)
	c.left.Store(0)
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
func (c *Client) admit(ctx context.Context, tc *TaskContext, n int64) error {
	if c.credit.take(n) {
		return nil
	}
	if tc.Blocker != nil {
		tc.Blocker.Blocked()
		defer tc.Blocker.Unblocked(ctx)
	}
	for {
		c.credit.mu.Lock()
		if c.credit.take(n) {
			c.credit.mu.Unlock()
			return nil
		}
		if c.credit.wake == nil {
			c.credit.wake = make(chan struct{})
		}
		wake := c.credit.wake
		c.credit.mu.Unlock()
		select {
		case <-wake:
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-c.dead:
			return c.cause
		}
	}
}

// Cost is the number of bytes that a message counts against credit: an estimate of what
// the owner keeps for it.
func Cost(m wire.Msg) int64 {
	switch m := m.(type) {
	case *wire.Submit:
		return specCost(m.Spec)
	case *wire.PutValue:
		return valueCost(&m.Value)
	}
	return 0
}

const taskCost = 512 // bytes of a task's record without its values

func specCost(s *wire.TaskSpec) int64 {
	n := int64(taskCost)
	for i := range s.Args {
		n += valueCost(&s.Args[i].Value)
	}
	return n
}

func valueCost(v *wire.Value) int64 {
	return 64 + int64(len(v.Meta)+len(v.Data)) + 20*int64(len(v.Refs))
}
