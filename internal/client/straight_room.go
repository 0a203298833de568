package client

import (
	"context"
	"sync"
	"sync/atomic"
)

// straightRoom bounds the bytes of the calls that go straight and have not ended: whoever makes more waits. Who has a call end takes no lock unless somebody does.
type straightRoom struct {
	*base
	left    atomic.Int64
	waiters atomic.Int32

	mu   sync.Mutex
	wake chan struct{} // guarded by mu; closed when there is room; nil: nobody waits
}

// straightWindow is how many bytes may be under way, a little more with the last.
const straightWindow = 32 << 20

func (r *straightRoom) take(n int64) bool {
	for {
		left := r.left.Load()
		if left <= 0 {
			return false
		}
		if r.left.CompareAndSwap(left, left-n) {
			return true
		}
	}
}

// add gives the room of a call that has ended back.
func (r *straightRoom) add(n int64) {
	r.left.Add(n)
	if r.waiters.Load() == 0 { // who begins to wait from here on sees what was added
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.wake != nil {
		close(r.wake)
		r.wake = nil
	}
}

// admit waits until n more bytes may be under way.
func (r *straightRoom) admit(ctx context.Context, tc *TaskContext, n int64) error {
	if r.take(n) {
		return nil
	}
	r.waits()
	if tc.Blocker != nil {
		tc.Blocker.Blocked(ctx, nil)
		defer tc.Blocker.Unblocked(ctx)
	}
	r.waiters.Add(1)
	defer r.waiters.Add(-1)
	for {
		r.mu.Lock()
		if r.take(n) {
			r.mu.Unlock()
			return nil
		}
		if r.wake == nil {
			r.wake = make(chan struct{})
		}
		wake := r.wake
		r.mu.Unlock()
		select {
		case <-wake:
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-r.dead:
			return r.cause
		}
	}
}
