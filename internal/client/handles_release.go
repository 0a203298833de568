package client

import (
	"sync"
	"sync/atomic"
	"time"

	"mobula/wire"
)

const (
	flushAt    = 256                  // releases or unpins that are sent at once
	flushDelay = 2 * time.Millisecond // the longest that one waits for others to be sent with
)

// releaser collects handles and pins that are no longer used. A handle in its queue is still in the table; if it
// is used again before the flush, it stays and nothing is sent.
type releaser struct {
	up      releaserUp
	waiting atomic.Int32 // handles and pins queued

	mu      sync.Mutex
	handles []*Handle   // guarded by mu
	pins    []*pin      // guarded by mu
	armed   bool        // guarded by mu: the timer runs
	timer   *time.Timer // guarded by mu
	closed  bool        // guarded by mu

	spareH []*Handle  // guarded by outbox.mu
	spareP []*pin     // guarded by outbox.mu
	unpins []wire.Msg // guarded by outbox.mu
}

// releaserUp sends what the releaser has collected.
type releaserUp interface{ Flush() }

func (r *releaser) release(h *Handle) {
	if h.call.Load() != nil && h.partsStraight() {
		return
	}
	r.mu.Lock()
	r.handles = append(r.handles, h)
	r.added()
}

func (r *releaser) unpin(p *pin) {
	r.mu.Lock()
	r.pins = append(r.pins, p)
	r.added()
}

// added arms the timer, or has a full batch flushed. It unlocks mu. It waits for no flush: cleanups of the runtime come here, and all others of
// the process, also the program's own, are behind one that waits for a node that reads nothing.
func (r *releaser) added() {
	n := r.waiting.Add(1)
	if !r.armed && !r.closed {
		r.armed = true
		if r.timer == nil {
			r.timer = time.AfterFunc(flushDelay, r.up.Flush)
		} else {
			r.timer.Reset(flushDelay)
		}
	}
	r.mu.Unlock()
	if n == flushAt {
		go r.up.Flush()
	}
}

func (r *releaser) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	if r.timer != nil {
		r.timer.Stop()
	}
}
