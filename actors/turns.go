package actors

import (
	"runtime/debug"
	"slices"

	"github.com/asynkron/protoactor-go/actor"
)

// run takes turns until there is nothing to do. A panic reaches protoactor here, as in its own mailboxes, and the
// turns go on in a new call: system messages must be handled.
func (m *mailbox[E]) run() {
	idle := false
	defer func() {
		if !idle {
			m.failed(recover())
		}
	}()
	for m.turn() {
	}
	idle = true
}

// runHere takes the turn that is due on a sender's goroutine, and leaves later events to the dispatcher, so that
// the sender can go on.
func (m *mailbox[E]) runHere() {
	idle := false
	defer func() {
		if !idle {
			m.failed(recover())
		}
	}()
	m.mu.Lock()
	if len(m.sys) == 0 && m.take() {
		m.mu.Unlock()
		m.invoker.InvokeUserMessage(wake)
		m.mu.Lock()
	}
	more := m.due()
	m.mu.Unlock()
	if more {
		m.dispatcher.Schedule(m.runFn)
	}
	idle = true
}

// failed ends a turn that panicked.
func (m *mailbox[E]) failed(v any) {
	if v == nil { // the stack is being unwound by Goexit: there is nothing to recover
		v = errGoexit
	}
	m.invoker.EscalateFailure(m.shell.panicked(v, debug.Stack()), nil)
	m.dispatcher.Schedule(m.runFn)
}

// turn handles one system message, or a batch. It tells whether there may be more to do.
func (m *mailbox[E]) turn() bool {
	m.mu.Lock()
	if !m.due() {
		end := m.finished
		m.mu.Unlock()
		if end && m.thread != nil {
			m.thread.end()
		}
		return false
	}
	if len(m.sys) > 0 {
		msg := m.sys[0]
		m.sys = slices.Delete(m.sys, 0, 1)
		m.attention.Store(len(m.sys) > 0)
		m.mu.Unlock()
		m.system(msg)
		return true
	}
	m.mu.Unlock()
	m.invoker.InvokeUserMessage(wake)
	return true
}

// due tells whether there is a system message or a batch to handle, and takes the batch. If not, the component is
// idle from now on. mu is held.
func (m *mailbox[E]) due() bool {
	if len(m.sys) > 0 {
		return true
	}
	m.attention.Store(false)
	if m.suspended || m.finished || !m.take() {
		m.scheduled = false
		return false
	}
	return true
}

// take takes a batch if none is under way, and tells whether there is one. mu is held.
func (m *mailbox[E]) take() bool {
	if m.pos < len(m.batch) {
		return true
	}
	m.settle()
	if len(m.queue) == 0 {
		m.admit()
		if len(m.queue) == 0 {
			return false
		}
	}
	m.batch, m.queue = m.queue, m.batch
	m.batchMetas, m.metas = m.metas, m.batchMetas
	m.inHand = len(m.batch)
	m.admit()
	return true
}

// settle ends a batch: it empties the buffers, and frees them if they were nearly empty for long. mu is held.
func (m *mailbox[E]) settle() {
	n := len(m.batch)
	clear(m.batch)
	clear(m.batchMetas)
	m.batch, m.batchMetas = m.batch[:0], m.batchMetas[:0]
	m.pos, m.mpos, m.inHand = 0, 0, 0
	m.handled += uint64(n)
	switch { // the two buffers take turns, so the size of one does not tell that of the other
	case cap(m.batch) <= chunk:
	case n > cap(m.batch)/4:
		m.small = 0
	default:
		if m.small++; m.small >= 256 {
			m.batch, m.batchMetas, m.small = nil, nil, 0
		}
	}
}

func (m *mailbox[E]) system(msg any) {
	switch msg.(type) {
	case *actor.SuspendMailbox:
		m.suspend(true)
	case *actor.ResumeMailbox:
		m.suspend(false)
	default:
		m.invoker.InvokeSystemMessage(msg)
	}
}

func (m *mailbox[E]) suspend(yes bool) {
	m.mu.Lock()
	m.suspended = yes
	m.mu.Unlock()
}
