package worker

import (
	"slices"
	"sync"
	"time"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/internal/inbox"
	"mobula/internal/registry"
	"mobula/wire"
)

// lane runs tasks in order of arrival, at most max at once: one for a lease, and for a concurrency group the bound
// of its actor. Idle goroutines are kept for some time.
type lane struct {
	e     *Executor
	max   int
	actor *actor // nil for a lease

	mu       sync.Mutex
	queue    []item        // guarded by mu; from head on
	head     int           // guarded by mu
	returned []item        // guarded by mu: given back, but the node is not told yet
	calls    []*call       // guarded by mu: under way
	left     []*call       // guarded by mu: abandoned, and not returned yet
	runners  int           // guarded by mu: goroutines, parked ones included
	parked   int           // guarded by mu
	wake     chan struct{} // one token for each runner to wake; capacity max
	done     []wire.Msg    // guarded by mu: Dones to send
	keep     []any         // guarded by mu: kept until done is sent
	sending  []wire.Msg    // guarded by mu: taken from done, not yet handed over
	sent     chan struct{} // guarded by mu: closed when sending is empty; nil: nobody waits for that
	idle     int           // guarded by mu: stats periods without work
	surplus  int           // guarded by mu: parked runners that should end
	closed   bool          // guarded by mu
	held     bool          // guarded by mu: an actor that is not created yet
	quick    int           // guarded by mu: short calls in a row
	lent     *runner       // guarded by mu: runner of the reader, in the place of a parked goroutine
	blocked  bool          // guarded by mu: a lease's task waits, and has given its CPU back
	quiet    chan struct{} // guarded by mu: closed when no call runs; nil: nobody waits for that
}

// item is a task in a lane's queue.
type item struct {
	t        wire.ExecTask
	lease    ids.LeaseID
	received int64
	unneeded *inbox.Inbox[uint32] // nil: it promised nothing
}

func newLane(e *Executor, size int, a *actor) *lane {
	return &lane{e: e, max: size, actor: a, wake: make(chan struct{}, size)}
}

// push queues tasks; false if the lane has been closed. Tasks that were on their way when the lease gave its CPU
// back are given back too: the blocked task may wait for one of them.
func (l *lane) push(lease ids.LeaseID, tasks []wire.ExecTask, now int64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return false
	}
	if l.blocked {
		back := make([]ids.TaskID, len(tasks))
		for i := range tasks {
			back[i] = tasks[i].Spec.ID
		}
		l.e.send(&wire.Blocked{Lease: lease, Returned: back})
		l.e.finished(len(back))
		return true
	}
	if l.head == len(l.queue) {
		l.queue, l.head = l.queue[:0], 0
	}
	for i := range tasks {
		it := item{t: tasks[i], lease: lease, received: now}
		if len(it.t.Spec.Promises) > 0 {
			it.unneeded = inbox.New[uint32]()
		}
		l.queue = append(l.queue, it)
	}
	l.idle, l.surplus = 0, 0
	if rd := l.e.reader; rd != nil && rd.borrowed == nil {
		if rd.borrowed = l.lendLocked(); rd.borrowed != nil {
			return true
		}
	}
	l.startLocked(len(tasks))
	return true
}

// startLocked wakes or makes up to n runners.
func (l *lane) startLocked(n int) {
	if l.held {
		return
	}
	for ; n > 0 && l.parked > 0; n-- {
		l.parked--
		l.wake <- struct{}{}
	}
	for ; n > 0 && l.runners < l.max; n-- {
		l.runners++
		if !l.e.spawn(func() { newRunner(l).run() }) {
			l.runners--
			return
		}
	}
}

// release starts the calls that waited for an actor's creation.
func (l *lane) release() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held = false
	l.startLocked(len(l.queue) - l.head)
}

// next ends a runner's last call and gives it its next task. If there is no task it sends the Dones and parks; it
// also sends them when there are enough. It returns false when the runner should end.
func (l *lane) next(r *runner) bool {
	l.mu.Lock()
	for {
		if len(l.done) > 0 && (l.head == len(l.queue) || len(l.done) >= doneBatch) {
			l.flushLocked()
			continue
		}
		if r.gone { // abandonLocked has subtracted it from the count
			l.mu.Unlock()
			return false
		}
		if r.borrows && (l.closed || l.head == len(l.queue)) {
			if l.closed {
				l.wake <- struct{}{} // the goroutine whose place it is ends it
			} else {
				l.parked++
			}
			l.mu.Unlock()
			return false
		}
		if l.closed || (l.surplus > 0 && l.head == len(l.queue)) {
			l.surplus = max(0, l.surplus-1)
			l.runners--
			l.mu.Unlock()
			return false
		}
		if l.head < len(l.queue) {
			break
		}
		l.parked++
		l.mu.Unlock()
		<-l.wake
		r.now = 0
		l.mu.Lock()
	}
	it := &l.queue[l.head]
	l.head++
	r.begin(it)
	*it = item{}
	l.calls = append(l.calls, r.call)
	late := len(l.done) > 0
	l.mu.Unlock()
	if late {
		l.e.armFlusher()
	}
	return true
}

// flushLocked sends the Dones. It unlocks mu while it does.
func (l *lane) flushLocked() {
	msgs, keep := l.done, l.keep
	l.done, l.keep = nil, nil
	l.sending = append(l.sending, msgs...)
	l.mu.Unlock()
	l.e.send(msgs...)
	l.e.finished(len(msgs))
	clear(keep)
	l.mu.Lock()
	l.handedOverLocked(msgs)
	if l.done == nil {
		clear(msgs)
		l.done = msgs[:0]
	}
}

// awaitSentLocked waits until what is being sent has been: it unlocks mu meanwhile. Sending does not block.
func (l *lane) awaitSentLocked() {
	for len(l.sending) > 0 {
		if l.sent == nil {
			l.sent = make(chan struct{})
		}
		sent := l.sent
		l.mu.Unlock()
		<-sent
		l.mu.Lock()
	}
}

// handedOverLocked takes what was sent off the list of what is being sent.
func (l *lane) handedOverLocked(msgs []wire.Msg) {
	if len(l.sending) == len(msgs) { // else another runner also sends
		clear(l.sending)
		l.sending = l.sending[:0]
	} else {
		l.sending = without(l.sending, msgs)
	}
	if len(l.sending) == 0 && l.sent != nil {
		close(l.sent)
		l.sent = nil
	}
}

func without(from, some []wire.Msg) []wire.Msg {
	out := from[:0]
	for _, m := range from {
		drop := false
		for _, s := range some {
			drop = drop || s == m
		}
		if !drop {
			out = append(out, m)
		}
	}
	clear(from[len(out):])
	return out
}

// ended records the report of a call. It is false if the call was abandoned: its runner was replaced, and nobody wants its results.
func (l *lane) ended(cl *call, d *wire.Done, keep any) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if cl.abandoned {
		l.awaitSentLocked() // that it was given up is told first
		l.left = slices.DeleteFunc(l.left, func(c *call) bool { return c == cl })
		l.e.pending.Add(1) // it was counted as finished when it was abandoned
		l.done = append(l.done, &wire.Done{Task: d.Task, Attempt: d.Attempt, Lease: d.Lease, Err: cancelled(d.Task), Times: d.Times})
		l.flushLocked()
		return false
	}
	l.dropCall(cl)
	l.tookLocked(time.Duration(d.Times.Ended - d.Times.Started))
	l.done = append(l.done, d)
	if keep != nil {
		l.keep = append(l.keep, keep)
	}
	return true
}

func (l *lane) dropCall(cl *call) {
	for i, c := range l.calls {
		if c == cl {
			last := len(l.calls) - 1
			l.calls[i] = l.calls[last]
			l.calls[last] = nil
			l.calls = l.calls[:last]
			break
		}
	}
	if len(l.calls) == 0 && l.quiet != nil {
		close(l.quiet)
		l.quiet = nil
	}
}

// takeQueue empties the queue of a lease whose task blocks, and sends waiting reports: the task may wait for what
// they resolve. Until unblock nothing is queued.
func (l *lane) takeQueue() []ids.TaskID {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.blocked = true
	if len(l.done) > 0 {
		l.flushLocked()
	}
	if l.head == len(l.queue) {
		return nil
	}
	out := make([]ids.TaskID, 0, len(l.queue)-l.head)
	for _, it := range l.queue[l.head:] {
		out = append(out, it.t.Spec.ID)
	}
	l.returned = append(l.returned, l.queue[l.head:]...)
	clear(l.queue)
	l.queue, l.head = l.queue[:0], 0
	return out
}

// queueReturned says that the node was told of the tasks that takeQueue returned: their owner may push them here again.
func (l *lane) queueReturned() {
	l.mu.Lock()
	l.returned = nil
	l.mu.Unlock()
}

// unblock says that the lease has its CPU again, or that the call which gave it back has ended.
func (l *lane) unblock() {
	l.mu.Lock()
	l.blocked = false
	l.mu.Unlock()
}

// cancel drops a queued task or cancels the context of a running one. It tells whether the task was here.
func (l *lane) cancel(task ids.TaskID, abandon bool) bool {
	l.mu.Lock()
	for i := l.head; i < len(l.queue); i++ {
		if l.queue[i].t.Spec.ID != task {
			continue
		}
		it := l.queue[i]
		l.queue = append(l.queue[:i], l.queue[i+1:]...)
		l.mu.Unlock()
		l.e.refuse(&it.t, it.lease, it.received, cancelled(task))
		return true
	}
	for _, cl := range l.calls {
		if cl.id() != task {
			continue
		}
		if abandon && !cl.abandoned {
			l.abandonLocked(cl, cancelled(task))
			l.replaceLocked(cl)
		}
		l.mu.Unlock()
		cl.ctx.cancel(cancelled(task))
		return true
	}
	l.mu.Unlock()
	return false
}

// onUnneeded tells a task which of its promised results are not needed. It tells whether the task was here.
func (l *lane) onUnneeded(m *wire.Unneeded) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	var u *inbox.Inbox[uint32]
	for i := l.head; i < len(l.queue); i++ {
		if l.queue[i].t.Spec.ID == m.Task {
			u = l.queue[i].unneeded
		}
	}
	for _, cl := range l.calls {
		if cl.id() == m.Task {
			u = cl.tc.Unneeded
		}
	}
	if u != nil {
		u.Add(m.Numbers...)
	}
	return u != nil
}

func cancelled(task ids.TaskID) *errs.Error {
	return &errs.Error{Code: errs.CodeCancelled, Task: task.String()}
}

// abandonLocked gives up on a call, which is reported with why.
func (l *lane) abandonLocked(cl *call, why *errs.Error) {
	cl.abandoned = true
	l.dropCall(cl)
	l.left = append(l.left, cl)
	now := l.e.cfg.Now()
	l.done = append(l.done, &wire.Done{Task: cl.id(), Attempt: cl.tc.Attempt, Lease: cl.lease, Err: why, StillRuns: true,
		Times: wire.Times{Received: cl.received, Started: max(cl.started.Load(), cl.received), Ended: now}})
}

// replaceLocked lets another runner take the place of the one that is stuck in an abandoned call.
func (l *lane) replaceLocked(cl *call) {
	if cl.borrowed { // the goroutine whose place it was takes it again
		l.lent = nil
		l.wake <- struct{}{}
		return
	}
	l.runners--
	l.startLocked(1) // it sends the report
}

// close ends the lane: running calls are cancelled, waiting ones are dropped.
func (l *lane) close() {
	l.mu.Lock()
	dropped := len(l.queue) - l.head
	clear(l.queue)
	l.queue, l.head, l.closed = nil, 0, true
	calls := append([]*call(nil), l.calls...)
	l.wakeAllLocked()
	l.mu.Unlock()
	for _, cl := range calls {
		cl.ctx.cancel(&errs.Error{Code: errs.CodeShutdown, Msg: "the worker is shutting down", Task: cl.id().String()})
	}
	if dropped > 0 {
		l.e.finished(dropped)
	}
}

func (l *lane) wakeAllLocked() {
	for ; l.parked > 0; l.parked-- {
		l.wake <- struct{}{}
	}
}

// sweep ends the goroutines of a lane that has been idle for a while, and tells whether
// the lane can be forgotten.
func (l *lane) sweep() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.head < len(l.queue) || len(l.calls)+len(l.left) > 0 || len(l.done) > 0 || len(l.sending) > 0 || l.held {
		l.idle = 0
		return false
	}
	if l.idle++; l.idle < laneLinger {
		return false
	}
	l.closed = l.actor == nil
	l.surplus = l.parked
	l.wakeAllLocked()
	return l.closed
}

// snapshot adds what the lane holds to the answer to Resync.
func (l *lane) snapshot(h *wire.Holdings) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, cl := range l.calls {
		at := wire.Attempt{Task: cl.id(), Attempt: cl.tc.Attempt, Lease: cl.lease}
		at.Blocked, at.Asks = cl.block.told()
		h.Tasks = append(h.Tasks, at)
	}
	for _, cl := range l.left {
		h.Tasks = append(h.Tasks, wire.Attempt{Task: cl.id(), Attempt: cl.tc.Attempt, Lease: cl.lease})
	}
	for _, items := range [][]item{l.queue[l.head:], l.returned} { // the message about those given back follows
		for _, it := range items {
			h.Tasks = append(h.Tasks, wire.Attempt{Task: it.t.Spec.ID, Attempt: it.t.Attempt, Lease: it.lease})
		}
	}
	for _, list := range [][]wire.Msg{l.sending, l.done} { // their reports follow
		for _, m := range list {
			if d, ok := m.(*wire.Done); ok {
				h.Tasks = append(h.Tasks, wire.Attempt{Task: d.Task, Attempt: d.Attempt, Lease: d.Lease})
			}
		}
	}
}

// function finds the task's function; the lane's runners remember their last one.
func (r *runner) function(spec *wire.TaskSpec) (*registry.Function, *errs.Error) {
	if r.opts == spec.Opts && r.fn != nil {
		return r.fn, nil
	}
	f, ok := r.lane.e.cfg.Lookup(spec.Opts.Func)
	if !ok {
		return nil, errs.New(errs.CodeUnknownFunction, "function %q is not registered in this worker's binary: register it at package level; there are %s", spec.Opts.Func, registry.Names())
	}
	r.opts, r.fn = spec.Opts, f
	return f, nil
}
