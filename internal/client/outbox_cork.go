package client

import (
	"sync/atomic"
	"time"

	"mobula/wire"
)

// cork keeps a submit back if the process submits a task and then waits for it, again and again. Submit and wait
// then go in one piece, and the node is woken once for both. The next message of any kind takes the submit along;
// without one the submit goes after corkTick.
type cork struct {
	msgs  []wire.Msg // one, or none; guarded by outbox.mu
	pairs int        // submits in a row that were followed by a wait; guarded by outbox.mu
	since int        // submits since the last wait; guarded by outbox.mu
	late  bool       // the wait did not come in time; guarded by outbox.mu

	count   atomic.Uint64 // of submits kept back
	ticking atomic.Bool   // the goroutine that sends late ones runs
}

const (
	corkAfter     = 8                // pairs in a row before a submit is kept back
	corkTick      = time.Millisecond // the longest that a submit is kept back
	corkIdleTicks = 100              // ticks without a kept submit after which the goroutine ends
)

// submit sends a task, or keeps it for its wait.
func (o *outbox) submit(m *wire.Submit) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.cork.since++
	if o.cork.since == 1 && o.cork.pairs >= corkAfter && o.port != nil && o.tick() {
		o.cork.msgs = append(o.cork.msgs, m)
		return nil
	}
	o.one[0] = m
	err := o.sendLocked(o.one[:])
	o.one[0] = nil
	return err
}

// waits notes a wait that is about to be sent. The outbox's lock is held.
func (h *cork) waits() {
	switch {
	case h.since != 1 || h.late:
		h.pairs = 0
	case h.pairs < corkAfter:
		h.pairs++
	}
	h.since, h.late = 0, false
}

// tick counts a submit that is kept back and makes sure that the ticker runs, which sends it; false if the client
// is closing.
func (o *outbox) tick() bool {
	h := &o.cork
	h.count.Add(1)
	if h.ticking.Load() || !h.ticking.CompareAndSwap(false, true) {
		return true
	}
	if o.start(o.ticker) {
		return true
	}
	h.ticking.Store(false)
	return false
}

func (o *outbox) ticker() {
	h := &o.cork
	t := time.NewTicker(corkTick)
	defer t.Stop()
	for last, calm := h.count.Load(), 0; ; {
		select {
		case <-o.dead:
			return
		case <-t.C:
		}
		n := h.count.Load()
		if n != last {
			last, calm = n, 0
		} else {
			calm++
		}
		o.uncork()
		if calm < corkIdleTicks {
			continue
		}
		h.ticking.Store(false)
		if h.count.Load() == last || !h.ticking.CompareAndSwap(false, true) {
			return
		}
		calm = 0
	}
}

// Uncork sends the submit that is kept back: what passes the owner may have a reference to it.
func (o *outbox) Uncork() {
	o.mu.Lock()
	defer o.mu.Unlock()
	_ = o.writeLocked(nil) // where the connection is gone, every use of its handles says so
}

// uncork sends the submit that is kept back, whose wait did not come in time.
func (o *outbox) uncork() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.cork.msgs) > 0 {
		o.cork.late = true
		_ = o.writeLocked(nil) // where the connection is gone, every use of its handles says so
	}
}
