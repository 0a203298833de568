package client

import (
	"sync"
	"sync/atomic"
	"time"

	"mobula/internal/ids"
	"mobula/wire"
)

const (
	flushAt    = 256                  // releases or unpins that are sent at once
	flushDelay = 2 * time.Millisecond // the longest that one waits for company
)

// releaser gathers what is not used any more. A handle in its queue is still in the
// table and comes back to life if somebody takes it before the flush: then nothing was
// sent and nothing is lost.
type releaser struct {
	c       *Client
	waiting atomic.Int32 // handles and pins queued

	mu      sync.Mutex
	handles []*Handle   // guarded by mu
	pins    []*pin      // guarded by mu
	armed   bool        // guarded by mu: the timer runs
	timer   *time.Timer // guarded by mu
	closed  bool        // guarded by mu

	spareH []*Handle // guarded by outbox.mu
	spareP []*pin    // guarded by outbox.mu
	unpins []wire.Msg
}

func (r *releaser) release(h *Handle) {
	r.mu.Lock()
	r.handles = append(r.handles, h)
	r.added()
}

func (r *releaser) unpin(p *pin) {
	r.mu.Lock()
	r.pins = append(r.pins, p)
	r.added()
}

// added arms the timer, or flushes when the batch is full. It unlocks mu.
func (r *releaser) added() {
	n := r.waiting.Add(1)
	if !r.armed && !r.closed {
		r.armed = true
		if r.timer == nil {
			r.timer = time.AfterFunc(flushDelay, r.c.Flush)
		} else {
			r.timer.Reset(flushDelay)
		}
	}
	r.mu.Unlock()
	if n == flushAt {
		r.c.Flush()
	}
}

// Flush sends the releases and unpins that wait for company.
func (c *Client) Flush() {
	c.out.mu.Lock()
	defer c.out.mu.Unlock()
	c.flushLocked()
	_ = c.writeLocked(nil) // what was kept back; a dead connection says so elsewhere
}

// flushLocked empties the queue. The outbox's lock is held, so that whoever takes a new
// hold on one of these objects sends it after the release.
func (c *Client) flushLocked() {
	r := &c.rel
	r.mu.Lock()
	handles, pins := r.handles, r.pins
	r.handles, r.pins = r.spareH[:0], r.spareP[:0]
	r.spareH, r.spareP = nil, nil
	r.waiting.Add(-int32(len(handles) + len(pins)))
	r.armed = false
	r.mu.Unlock()

	if len(pins) > 0 {
		r.unpins = r.unpins[:0]
		for _, p := range pins {
			if n := c.table.dropPin(p); n > 0 {
				r.unpins = append(r.unpins, &wire.Unpin{ID: p.id, N: n})
			}
		}
		_ = c.writeLocked(r.unpins) // a dead connection has no pins
		clear(r.unpins)
	}
	if len(handles) > 0 {
		gone := make([]ids.ObjectID, 0, len(handles))
		for _, h := range handles {
			if c.table.drop(h) {
				gone = append(gone, h.id)
			}
		}
		if len(gone) > 0 {
			_ = c.writeLocked([]wire.Msg{&wire.Release{IDs: gone}}) // a dead connection has no handles
		}
	}
	clear(handles)
	clear(pins)
	r.spareH, r.spareP = handles, pins
}

// drop takes a queued handle out of the table, unless it is used again.
func (t *table) drop(h *Handle) bool {
	s := t.shard(h.id)
	s.mu.Lock()
	defer s.mu.Unlock()
	h.flags &^= queued
	if h.refs > 0 || h.wait != nil || h.flags&removed != 0 {
		return false
	}
	t.forget(s, h)
	s.remove(h)
	return true
}

func (r *releaser) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	if r.timer != nil {
		r.timer.Stop()
	}
}
