package worker

import (
	"runtime"

	"mobula/internal/direct"
	"mobula/internal/direct/talk"
	"mobula/internal/errs"
	"mobula/wire"
)

// order is something that is to be done without a lock, since the mailbox tells of it under its own: a message, and what follows when it was sent.
type order struct {
	msg    wire.Msg // nil: none
	keep   any      // until it is sent
	own    *owned   // whose last report it is; nil: of none
	counts bool     // as a task that was reported
	ack    uint64   // of ownersChannel; 0: none
	then   func()   // nil: nothing
}

// orderLocked has something done soon. mu is held.
func (h *hosted) orderLocked(x order) {
	h.out = append(h.out, x)
	h.urgent = true
}

// HandOver does what is to be done, in order. Reports alone wait for some more, if there are calls that will be reported. If a goroutine is at it, that one goes on.
func (h *hosted) HandOver() {
	h.mu.Lock()
	late := h.handOverLocked()
	h.mu.Unlock()
	if late {
		h.e.armFlusher()
	}
}

// flush sends reports that have waited long enough.
func (h *hosted) flush() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.urgent = true
	h.handOverLocked()
}

// handOverLocked tells whether something still waits. mu is held, but for while it is done.
func (h *hosted) handOverLocked() (late bool) {
	if h.handing {
		return false
	}
	h.handing = true
	for len(h.out) > 0 && (h.urgent || len(h.out) >= doneBatch) {
		orders := h.out
		h.out, h.used, h.urgent = h.used[:0], nil, false
		h.mu.Unlock()
		h.perform(orders)
		h.mu.Lock()
		clear(orders)
		h.used = orders[:0]
	}
	h.handing = false
	return len(h.out) > 0
}

func (h *hosted) perform(orders []order) {
	for len(orders) > 0 {
		n := 0 // up to what follows on a message
		for n < len(orders) && (n == 0 || orders[n-1].then == nil) {
			n++
		}
		h.sendAll(orders[:n])
		if then := orders[n-1].then; then != nil {
			then()
		}
		orders = orders[n:]
	}
}

// sendAll sends the messages of orders, and forgets the calls whose last reports they are.
func (h *hosted) sendAll(orders []order) {
	var few [4]wire.Msg
	msgs := few[:0]
	reports, ack := 0, uint64(0)
	for i := range orders {
		x := &orders[i]
		if x.msg != nil {
			msgs = append(msgs, x.msg)
		}
		if x.counts {
			reports++
		}
		ack = max(ack, x.ack)
	}
	if len(msgs) > 0 {
		h.e.send(msgs...)
	}
	runtime.KeepAlive(orders)
	h.mu.Lock()
	for i := range orders {
		if own := orders[i].own; own != nil {
			h.unlistLocked(own)
		}
	}
	h.mu.Unlock()
	if reports > 0 {
		h.e.finished(reports)
	}
	if ack > 0 {
		h.box.Tell(direct.Acked{Channel: ownersChannel, UpTo: ack})
	}
}

// TellOwner tells what a call has come to whose caller is gone.
func (h *hosted) TellOwner(f direct.HostEffect) {
	m := &wire.Told{Channel: uint64(f.Channel), No: f.No, Said: wire.Said(f.Said)}
	if o := f.Outcome; o != nil {
		m.Outcome = &wire.CallOutcome{Err: o.Err}
		if a, ok := o.Value.(*talk.Answer); ok && o.Err == nil {
			m.Outcome.Results = a.Results
		}
	}
	h.tell(order{msg: m, keep: f.Outcome})
}

// NotHere tells of a call that never came.
func (h *hosted) NotHere(f direct.HostEffect) {
	h.tell(order{msg: &wire.Told{Channel: uint64(f.Channel), No: f.No, NeverCame: true}})
}

func (h *hosted) tell(x order) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.orderLocked(x)
}

// Fallen notes that a panic has ended the instance, in a call or in what runs its calls. The owner is told when it was told of the calls.
func (h *hosted) Fallen(f direct.HostEffect) {
	h.a.brokenBy(f.Outcome.Err)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.fell = f.Outcome
	if h.why == nil {
		h.why = h.a.broken.Load()
	}
}

// lastLocked notes that nothing follows: the mailbox has answered all calls of the owner, unless what runs it has failed too.
func (h *hosted) lastLocked() {
	for own := h.first; own != nil; own = own.next {
		if !own.told {
			h.answeredLocked(own, h.why, true, 0)
		}
	}
	if o := h.fell; o != nil {
		h.fell = nil
		a := h.a
		h.e.log.Error("a panic has ended the instance of an actor", "actor", a.id, "type", a.name, "err", o.Err, "stack", o.Err.Stack)
		h.orderLocked(order{msg: &wire.ActorStopped{Actor: a.id, Lease: a.lease, Err: o.Err}, keep: o, then: func() {
			a.end()
			h.e.forget(a) // not before: what it has is among the Holdings until it is reported
		}})
	}
	h.orderLocked(order{then: h.isOver})
}

// isOver says that all calls were told of that the instance has not left behind.
func (h *hosted) isOver() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.over = true
	h.settledLocked()
}

// Panicked logs that a core has panicked.
func (h *hosted) Panicked(event string, reason any, n int) {
	h.e.log.Error("what runs the calls of an actor has panicked", "actor", h.a.id, "type", h.a.name, "event", event, "times", n, "panic", errs.Text(reason))
}
