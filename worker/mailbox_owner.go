package worker

import (
	"mobula/internal/direct"
	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/internal/inbox"
	"mobula/wire"
)

// ownersChannel is the channel of the calls that the owner pushes. Those that it gives out begin at 1.
const ownersChannel direct.Channel = 0

// owned is a call that the owner has pushed, from when it comes until its last report is sent.
type owned struct {
	in  direct.Incoming
	it  item
	no  uint64         // on ownersChannel
	out direct.Outcome // with what must be kept until the report is sent

	cl         *call   // guarded by hosted.mu; nil: it has not come to its goroutine
	rep        *report // guarded by hosted.mu; nil: it has not returned
	begun      bool    // guarded by hosted.mu
	told       bool    // guarded by hosted.mu: the mailbox has answered it
	silent     bool    // guarded by hosted.mu: the owner has not heard of that
	prev, next *owned  // guarded by hosted.mu
}

// push puts calls into the mailbox.
func (h *hosted) push(lease ids.LeaseID, tasks []wire.ExecTask, now int64) {
	<-h.ready // which takes no longer than it takes to put some calls into the mailbox
	calls := make([]*direct.Incoming, 0, len(tasks))
	for i := range tasks {
		it := item{t: tasks[i], lease: lease, received: now}
		if len(it.t.Spec.Promises) > 0 {
			it.unneeded = inbox.New[uint32]()
		}
		calls = append(calls, &h.list(it).in)
	}
	h.box.Arrive(ownersChannel, calls)
}

// list makes the next call.
func (h *hosted) list(it item) *owned {
	own := &owned{it: it}
	h.came++
	own.no = h.came
	own.in.ID, own.in.Group, own.in.Payload = it.t.Spec.ID, h.a.numbers[it.t.Spec.Opts.Group], own
	h.mu.Lock()
	defer h.mu.Unlock()
	if own.prev = h.last; own.prev != nil {
		own.prev.next = own
	} else {
		h.first = own
	}
	h.last = own
	h.waiting[own.in.Group]++
	return own
}

func (h *hosted) unlistLocked(own *owned) {
	if own.prev != nil {
		own.prev.next = own.next
	} else {
		h.first = own.next
	}
	if own.next != nil {
		own.next.prev = own.prev
	} else {
		h.last = own.prev
	}
	own.prev, own.next = nil, nil
}

// findLocked is the owner's call of a task, if it is here; mu is held.
func (h *hosted) findLocked(task ids.TaskID) *owned {
	own := h.first
	for own != nil && own.in.ID != task {
		own = own.next
	}
	return own
}

// cancel cancels a call, waiting or running. It tells whether it was here.
func (h *hosted) cancel(task ids.TaskID, abandon bool) bool {
	<-h.ready
	h.mu.Lock()
	own := h.findLocked(task)
	h.mu.Unlock()
	if own != nil {
		h.box.Tell(direct.Unwanted{Channel: ownersChannel, No: own.no, Wish: direct.Wish{Force: abandon}})
	}
	return own != nil
}

// onUnneeded tells a call which of its promised results are not needed. It tells whether it was here.
func (h *hosted) onUnneeded(m *wire.Unneeded) bool {
	h.mu.Lock()
	own := h.findLocked(m.Task)
	h.mu.Unlock()
	if own == nil || own.it.unneeded == nil {
		return false
	}
	own.it.unneeded.Add(m.Numbers...)
	return true
}

// snapshot adds the owner's calls that are here to the answer to Resync.
func (h *hosted) snapshot(out *wire.Holdings) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for own := h.first; own != nil; own = own.next {
		at := wire.Attempt{Task: own.in.ID, Attempt: own.it.t.Attempt, Lease: own.it.lease}
		if own.cl != nil {
			at.Blocked, at.Asks = own.cl.block.told()
		}
		out.Tasks = append(out.Tasks, at)
	}
}

// ownedRan notes the report of a call that has run. If it was left behind, it is only told that it has returned.
func (h *hosted) ownedRan(own *owned, rep *report, keep any) *direct.Outcome {
	d := &rep.d
	h.mu.Lock()
	own.rep, own.out = rep, direct.Outcome{Err: d.Err, Value: keep}
	late := own.told
	switch {
	case own.silent:
		h.reportLocked(own, d, 0)
	case late:
		h.e.pending.Add(1) // it was counted as finished when it was left behind
		h.reportLocked(own, &wire.Done{Task: d.Task, Attempt: d.Attempt, Lease: d.Lease, Err: cancelled(d.Task), Times: d.Times}, 0)
	}
	h.mu.Unlock()
	if late {
		h.HandOver()
	}
	return &own.out
}

// Begun notes that a call counts as begun.
func (h *hosted) Begun(f direct.HostEffect) {
	if own, ok := f.Call.Payload.(*owned); ok {
		h.mu.Lock()
		own.begun = true
		h.waiting[own.in.Group]--
		h.mu.Unlock()
	}
}

// Answered reports the end of a call of the owner.
func (h *hosted) Answered(f direct.HostEffect) {
	if f.Channel != ownersChannel {
		return // of a process that is gone: the core keeps the answer
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if f.Do == direct.SayLast {
		h.lastLocked()
		return
	}
	why := h.why
	if f.Outcome != nil {
		why = f.Outcome.Err
	}
	if own := f.Call.Payload.(*owned); !own.told {
		h.answeredLocked(own, why, f.Said != direct.SaidCulprit, f.AckNo)
	}
}

// answeredLocked reports a call: what it has come to, or why it is not run, or is left behind if it still runs. Of one that has not begun no time is given at which it
// started. mu is held.
func (h *hosted) answeredLocked(own *owned, why *errs.Error, runs bool, ack uint64) {
	if own.told = true; !own.begun {
		h.waiting[own.in.Group]--
	}
	if why == nil && own.rep == nil { // what runs its calls has failed
		why = errs.New(errs.CodeComponentFailed, "what runs the calls of actor %v has failed: the log says how", h.a.id)
	}
	switch {
	case own.rep != nil:
		h.reportLocked(own, &own.rep.d, ack)
	case h.closing && own.begun && runs: // it is reported when it has returned
		own.silent = true
	case h.closing:
		h.orderLocked(order{own: own, counts: true, ack: ack})
	default:
		d := &wire.Done{Task: own.in.ID, Attempt: own.it.t.Attempt, Lease: own.it.lease, Err: why, StillRuns: own.begun && runs,
			Times: wire.Times{Received: own.it.received, Ended: h.e.cfg.Now()}}
		if own.begun {
			d.Times.Started = max(1, own.it.received)
			if own.cl != nil {
				d.Times.Started = max(d.Times.Started, own.cl.started.Load())
			}
		}
		h.reportLocked(own, d, ack)
	}
}

// reportLocked has a report sent, and the call forgotten if it is the last one. mu is held.
func (h *hosted) reportLocked(own *owned, d *wire.Done, ack uint64) {
	x := order{msg: d, counts: true, ack: ack, keep: own}
	if !d.StillRuns {
		x.own = own
	}
	if h.out = append(h.out, x); d.StillRuns || h.waiting[own.in.Group] == 0 {
		h.urgent = true
	}
}
