package client

import (
	"sync/atomic"
	"time"

	"mobula/wire"
)

// hold keeps a submit back, where the process submits a task and then waits for it, again
// and again: submit and wait go in one piece, and the node is woken once for both. The next
// message of any kind takes the submit along; if there is none, holdTick passes at most.
type hold struct {
	msgs  []wire.Msg // one, or none; guarded by outbox.mu
	pairs int        // in a row, each a submit and then a wait; guarded by outbox.mu
	since int        // submits since the last wait; guarded by outbox.mu
	late  bool       // the wait did not come in time; guarded by outbox.mu

	count   atomic.Uint64 // of submits kept back
	ticking atomic.Bool   // the goroutine runs that lets late ones go
}

const (
	holdAfter = 8                // pairs in a row, before a submit is kept back
	holdTick  = time.Millisecond // the longest that one is
	holdCalm  = 100              // ticks without one, after which the goroutine ends
)

// submit sends a task, or keeps it for its wait.
func (o *outbox) submit(m *wire.Submit) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.hold.since++
	if o.hold.since == 1 && o.hold.pairs >= holdAfter && o.port != nil && o.tick() {
		o.hold.msgs = append(o.hold.msgs, m)
		return nil
	}
	o.one[0] = m
	err := o.sendLocked(o.one[:])
	o.one[0] = nil
	return err
}

// waits learns from a wait that is about to be sent. The outbox's lock is held.
func (h *hold) waits() {
	switch {
	case h.since != 1 || h.late:
		h.pairs = 0
	case h.pairs < holdAfter:
		h.pairs++
	}
	h.since, h.late = 0, false
}

// tick counts a submit that is to be kept back and sees to it that it will not stay; false
// when the client is closing.
func (o *outbox) tick() bool {
	h := &o.hold
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
	h := &o.hold
	t := time.NewTicker(holdTick)
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
		o.letGo()
		if calm < holdCalm {
			continue
		}
		h.ticking.Store(false)
		if h.count.Load() == last || !h.ticking.CompareAndSwap(false, true) {
			return
		}
		calm = 0
	}
}

// letGo sends what is kept back.
func (o *outbox) letGo() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.hold.msgs) > 0 {
		o.hold.late = true
		_ = o.writeLocked(nil) // where the connection is gone, every use of its handles says so
	}
}
