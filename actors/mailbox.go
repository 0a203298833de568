package actors

import (
	"context"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/asynkron/protoactor-go/actor"

	"mobula/wire"
)

// chunk is how many messages are stepped between looks at the clock and at the room
// in the mailbox; flushEvery how many at most between two flushes.
const (
	chunk      = 64
	flushEvery = 256
)

// wakeUp is the one protoactor user message of the kit: "your typed queue has events".
type wakeUp struct{}

var wake any = &wakeUp{}

// meta is what a few events carry beside themselves; idx is the event's place in its batch.
type meta struct {
	idx    int
	traced bool
	tc     wire.TraceContext
	posted int64  // Unix ns; 0: no span asked
	inc    uint32 // of the core whose timer it is; 0: of no core
}

// owner is the shell in its current incarnation, as the mailbox sees it.
type owner interface {
	panicked(v any, stack []byte) *PanicError
}

// mailbox is a component's protoactor mailbox: a typed queue beside a queue of system
// messages. It outlives the cores, so it holds what a restart must not lose: the
// batch in hand and the place in it.
type mailbox[E any] struct {
	n          *node
	bound      int
	runFn      func() // m.run, made once
	dispatcher actor.Dispatcher
	thread     *thread // nil: a goroutine a turn
	invoker    actor.MessageInvoker
	attention  atomic.Bool // system messages wait: leave the batch

	mu        sync.Mutex
	queue     []E
	metas     []meta // of queue, by idx
	sys       []any
	waiters   []*waiter[E]
	timers    *timer[E] // a list
	inHand    int       // of batch, to within a chunk
	scheduled bool
	suspended bool // between a panic and the new core
	closed    bool // no more posts
	finished  bool // no more turns
	handled   uint64

	// The component's goroutine only.
	batch       []E
	batchMetas  []meta
	pos, mpos   int
	small       int // batches in a row that left a large buffer nearly empty
	redelivered bool
	inc         uint32
	trace       wire.TraceContext
	shell       owner
}

type waiter[E any] struct {
	ev   E
	done chan error
}

func newMailbox[E any](n *node, bound int, ownThread bool) *mailbox[E] {
	m := &mailbox[E]{n: n, bound: bound, dispatcher: actor.NewDefaultDispatcher(chunk)}
	m.runFn = m.run
	if ownThread {
		m.thread = newThread()
		m.dispatcher = m.thread
	}
	return m
}

// post appends an event; mt may be nil.
func (m *mailbox[E]) post(ev E, mt *meta) error {
	m.mu.Lock()
	if m.closed || len(m.queue)+m.inHand >= 2*m.bound {
		closed := m.closed
		m.mu.Unlock()
		return m.refused(closed)
	}
	m.queue = append(m.queue, ev)
	if mt != nil {
		mt.idx = len(m.queue) - 1
		m.metas = append(m.metas, *mt)
	}
	m.unlockAndWake()
	return nil
}

func (m *mailbox[E]) refused(closed bool) error {
	if closed {
		return fmt.Errorf("%s: %w", m.n.path, ErrStopped)
	}
	return fmt.Errorf("%s: %w: %d messages wait; slow down, or use Send to wait for room", m.n.path, ErrMailboxFull, 2*m.bound)
}

// force appends what must not be lost for want of room: notices and timers.
func (m *mailbox[E]) force(ev E, inc uint32) {
	m.mu.Lock()
	if m.closed {
		m.mu.Unlock()
		return
	}
	m.queue = append(m.queue, ev)
	if inc != 0 {
		m.metas = append(m.metas, meta{idx: len(m.queue) - 1, inc: inc})
	}
	m.unlockAndWake()
}

func (m *mailbox[E]) unlockAndWake() {
	start := !m.scheduled && !m.suspended
	if start {
		m.scheduled = true
	}
	m.mu.Unlock()
	if start {
		m.dispatcher.Schedule(m.runFn)
	}
}

func (m *mailbox[E]) send(ctx context.Context, ev E) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	m.mu.Lock()
	if m.closed {
		m.mu.Unlock()
		return m.refused(true)
	}
	if len(m.waiters) == 0 && len(m.queue)+m.inHand < m.bound {
		m.queue = append(m.queue, ev)
		m.unlockAndWake()
		return nil
	}
	w := &waiter[E]{ev: ev, done: make(chan error, 1)}
	m.waiters = append(m.waiters, w)
	m.mu.Unlock()
	select {
	case err := <-w.done:
		return err
	case <-ctx.Done():
	}
	m.mu.Lock()
	i := slices.Index(m.waiters, w)
	if i >= 0 {
		m.waiters = slices.Delete(m.waiters, i, i+1)
	}
	m.mu.Unlock()
	if i < 0 { // it was decided before the context ended
		return <-w.done
	}
	return context.Cause(ctx)
}

// admit moves waiting senders' events into the queue while there is room. mu is held.
func (m *mailbox[E]) admit() {
	i := 0
	for ; i < len(m.waiters) && len(m.queue)+m.inHand < m.bound; i++ {
		m.queue = append(m.queue, m.waiters[i].ev)
		m.waiters[i].done <- nil
	}
	if i > 0 {
		m.waiters = slices.Delete(m.waiters, 0, i)
	}
}

// PostUserMessage is protoactor's way in. The kit never sends a user message by it,
// and nothing else has the PID's address.
func (m *mailbox[E]) PostUserMessage(message any) {
	m.n.sys.log.Warn("untyped message dropped", "component", m.n.path, "type", fmt.Sprintf("%T", message))
}

// PostSystemMessage implements actor.Mailbox.
func (m *mailbox[E]) PostSystemMessage(message any) {
	m.mu.Lock()
	if m.finished {
		m.mu.Unlock()
		return
	}
	m.sys = append(m.sys, message)
	m.attention.Store(true)
	start := !m.scheduled
	m.scheduled = true
	m.mu.Unlock()
	if start {
		m.dispatcher.Schedule(m.runFn)
	}
}

// RegisterHandlers implements actor.Mailbox.
func (m *mailbox[E]) RegisterHandlers(invoker actor.MessageInvoker, _ actor.Dispatcher) {
	m.invoker = invoker
}

// Start implements actor.Mailbox.
func (m *mailbox[E]) Start() {}

// UserMessageCount implements actor.Mailbox.
func (m *mailbox[E]) UserMessageCount() int {
	d, _ := m.depth()
	return d
}

// run takes turns until there is nothing to do. A panic reaches protoactor here, as in
// its own mailboxes, and the turns go on in a new call: system messages must.
func (m *mailbox[E]) run() {
	idle := false
	defer func() {
		if idle {
			return
		}
		v := recover()
		if v == nil { // the stack is being unwound by Goexit: there is nothing to recover
			v = errGoexit
		}
		m.invoker.EscalateFailure(m.shell.panicked(v, debug.Stack()), nil)
		m.dispatcher.Schedule(m.runFn)
	}()
	m.turns()
	idle = true
}

func (m *mailbox[E]) turns() {
	for {
		m.mu.Lock()
		if len(m.sys) > 0 {
			msg := m.sys[0]
			m.sys = slices.Delete(m.sys, 0, 1)
			m.attention.Store(len(m.sys) > 0)
			m.mu.Unlock()
			m.system(msg)
			continue
		}
		m.attention.Store(false)
		if m.suspended || m.finished || !m.take() {
			m.scheduled = false
			end := m.finished
			m.mu.Unlock()
			if end && m.thread != nil {
				m.thread.end()
			}
			return
		}
		m.mu.Unlock()
		m.invoker.InvokeUserMessage(wake)
	}
}

// take makes sure that there is a batch in hand, and tells if there is. mu is held.
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

// settle ends a batch: its buffers are emptied, and given back after they have been
// nearly empty for long. mu is held.
func (m *mailbox[E]) settle() {
	n := len(m.batch)
	clear(m.batch)
	clear(m.batchMetas)
	m.batch, m.batchMetas = m.batch[:0], m.batchMetas[:0]
	m.pos, m.mpos, m.inHand = 0, 0, 0
	m.handled += uint64(n)
	switch { // the two buffers take turns: a small one says nothing about the other
	case cap(m.batch) <= chunk:
	case n > cap(m.batch)/4:
		m.small = 0
	default:
		if m.small++; m.small >= 256 {
			m.batch, m.batchMetas, m.small = nil, nil, 0
		}
	}
}

// account says how much of the batch is left, so that senders get in.
func (m *mailbox[E]) account() {
	m.mu.Lock()
	m.inHand = len(m.batch) - m.pos
	m.admit()
	m.mu.Unlock()
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

// close refuses posts from now on, and whoever waits for room.
func (m *mailbox[E]) close() {
	m.mu.Lock()
	m.closed = true
	ws := m.waiters
	m.waiters = nil
	m.mu.Unlock()
	for _, w := range ws {
		w.done <- m.refused(true)
	}
	m.cancelTimers(0)
}

// finish ends the mailbox and tells how many messages it held. Idempotent.
func (m *mailbox[E]) finish() (dropped int) {
	m.close()
	m.mu.Lock()
	defer m.mu.Unlock()
	dropped = len(m.queue) + len(m.batch) - m.pos
	m.handled += uint64(m.pos)
	m.finished = true
	m.queue, m.metas, m.batch, m.batchMetas, m.sys = nil, nil, nil, nil, nil
	m.pos, m.mpos, m.inHand = 0, 0, 0
	if m.thread != nil && !m.scheduled {
		m.thread.end()
	}
	return dropped
}

func (m *mailbox[E]) depth() (waiting, bound int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.queue) + m.inHand, m.bound
}

func (m *mailbox[E]) handledCount() uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.handled
}
