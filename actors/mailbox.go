package actors

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/asynkron/protoactor-go/actor"
)

// chunk is how many messages are stepped between reads of the clock and checks for room in the mailbox; flushEvery
// is how many at most between two flushes.
const (
	chunk      = 64
	flushEvery = 256
)

// wakeUp is the one protoactor user message of the kit: "your typed queue has events".
type wakeUp struct{}

var wake any = &wakeUp{}

// meta is additional data of a timer's event.
type meta struct {
	idx int    // the event's place in its batch
	inc uint32 // of the core whose timer it is
}

// owner is the current shell, as the mailbox sees it.
type owner interface {
	panicked(v any, stack []byte) *PanicError
}

// mailbox is a component's protoactor mailbox: a typed queue beside a queue of system
// messages. It outlives the cores, so it holds what a restart must not lose: the present batch and the position in
// it.
type mailbox[E any] struct {
	n          *node
	bound      int
	runFn      func() // m.run, made once
	hereFn     func() // m.runHere
	dispatcher actor.Dispatcher
	thread     *thread // nil: each turn runs on a goroutine of the pool
	invoker    actor.MessageInvoker
	attention  atomic.Bool // system messages wait: leave the batch

	mu        sync.Mutex
	queue     []E    // no queue.Queue: a turn takes all of it at once, in exchange for its batch
	metas     []meta // of queue, by idx
	sys       []any
	waiters   []*waiter[E]
	timers    *timer[E] // a list
	inHand    int       // left in batch, to within a chunk
	scheduled bool
	suspended bool // between a panic and the new core
	closed    bool // no more posts
	finished  bool // no more turns
	handled   uint64

	// The component's goroutine only.
	batch       []E
	batchMetas  []meta
	pos, mpos   int
	small       int // number of batches in a row that left a large buffer nearly empty
	redelivered bool
	inc         uint32
	shell       owner
}

type waiter[E any] struct {
	ev   E
	done chan error
}

func newMailbox[E any](n *node, bound int, ownThread bool) *mailbox[E] {
	m := &mailbox[E]{n: n, bound: bound, dispatcher: &n.sys.pool}
	m.runFn, m.hereFn = m.run, m.runHere
	if ownThread {
		m.thread = newThread()
		m.dispatcher = m.thread
	}
	return m
}

// post appends an event.
func (m *mailbox[E]) post(ev E) error {
	m.mu.Lock()
	if m.closed || len(m.queue)+m.inHand >= 2*m.bound {
		closed := m.closed
		m.mu.Unlock()
		return m.refused(closed)
	}
	m.queue = append(m.queue, ev)
	m.unlockAndWake()
	return nil
}

func (m *mailbox[E]) refused(closed bool) error {
	if closed {
		return fmt.Errorf("%s: %w", m.n.path, ErrStopped)
	}
	return fmt.Errorf("%s: %w: %d messages wait; slow down, or use Send to wait for room", m.n.path, ErrMailboxFull, 2*m.bound)
}

// force appends an event that must not be lost for lack of room: notices, timers and delivered events.
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
	if i < 0 { // the send was decided before the context ended
		return <-w.done
	}
	return context.Cause(ctx)
}

// sendTurn is send; if the component is idle, it gives the caller the turn for the event.
func (m *mailbox[E]) sendTurn(ctx context.Context, ev E) (turn func(), err error) {
	m.mu.Lock()
	if m.scheduled || m.suspended || m.closed || m.thread != nil {
		m.mu.Unlock()
		return nil, m.send(ctx, ev)
	}
	if ctx.Err() != nil {
		m.mu.Unlock()
		return nil, context.Cause(ctx)
	}
	m.queue = append(m.queue, ev) // idle: it was empty, and nobody waits for room
	m.scheduled = true
	m.mu.Unlock()
	return m.hereFn, nil
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

// PostUserMessage implements actor.Mailbox. The kit never sends a user message with it, and nothing else has the
// PID's address.
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

// account updates how much of the batch is left, so that senders get room.
func (m *mailbox[E]) account() {
	m.mu.Lock()
	m.inHand = len(m.batch) - m.pos
	m.admit()
	m.mu.Unlock()
}

// close refuses posts from now on, and those that wait for room.
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

// finish ends the mailbox and returns how many messages it held. It is idempotent.
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
	return m.handled + uint64(len(m.batch)-m.inHand)
}
