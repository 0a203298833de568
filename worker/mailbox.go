package worker

import (
	"context"
	"sync"

	"mobula/internal/direct"
	"mobula/internal/direct/shell"
	"mobula/internal/direct/wired"
	"mobula/internal/errs"
	"mobula/wire"
)

// hosted is an instance of an actor whose calls a mailbox runs, those that came straight and those that the owner has pushed: how it begins and ends. What runs is in
// mailbox_run.go, the owner's calls in mailbox_owner.go, and what the mailbox tells in mailbox_up.go.
type hosted struct {
	e    *Executor
	a    *actor
	once bool // a call of it never runs again
	box  *shell.Mailbox
	lane *lane // it has no tasks any more: by it a call's runner knows the executor and the actor

	ready chan struct{} // closed when the calls that came before it are in the mailbox
	came  uint64        // calls of the owner; of Deliver's caller, from ready on

	mu      sync.Mutex // taken under the mailbox' lock
	runs    []running  // guarded by mu
	early   []early    // guarded by mu: interrupted before they ran
	awaited int        // guarded by mu: calls that the stop has interrupted, and that have not ended
	spare   []*runner  // guarded by mu: with nothing to run
	first   *owned     // guarded by mu: of the owner's calls that are here, as they came
	last    *owned     // guarded by mu: of these

	why     *errs.Error     // guarded by mu: of the calls that the end leaves behind; nil: nothing has ended it
	stopped bool            // guarded by mu: it is to be closed when what still runs has ended
	closing bool            // guarded by mu: the process ends, and the owner is not told of what is left behind
	fell    *direct.Outcome // guarded by mu: what has brought it down, until the owner is told
	over    bool            // guarded by mu: nothing runs any more but what was left behind, and the owner was told of all
	quiet   chan struct{}   // guarded by mu: closed when it is over and nothing is awaited; nil: nobody waits for that

	out     []order // guarded by mu: what is to be done without a lock, in order
	used    []order // guarded by mu: memory for out
	handing bool    // guarded by mu: a goroutine does it
	urgent  bool    // guarded by mu: there is more in out than reports that others will follow soon
	waiting []int   // guarded by mu: the owner's calls that have not begun, of each group

	channels []*wired.Host // guarded by mu: by which other processes call
}

// host has a mailbox run the calls of an actor that was just made.
func (e *Executor) host(a *actor, opts *wire.TaskOptions) {
	h := &hosted{e: e, a: a, once: opts.MaxTaskRetries == 0, lane: a.lanes[0], ready: make(chan struct{})}
	groups := []int{int(max(1, opts.MaxConcurrency))}
	for _, g := range opts.Groups {
		if g.Name == "" {
			continue
		}
		if a.numbers == nil {
			a.numbers = make(map[string]int)
		}
		a.numbers[g.Name] = len(groups)
		groups = append(groups, int(max(1, g.Max)))
	}
	h.waiting = make([]int, len(groups))
	h.box = shell.NewMailbox(shell.Config{
		HostConfig: direct.HostConfig{Groups: groups, Pending: int(max(0, opts.MaxPendingCalls)), Unread: unreadMost},
		Instance:   a.lease, Run: h.run, Up: h, Spawn: e.spawn,
	})
	h.box.Tell(direct.Linked{Channel: ownersChannel})
	e.mu.Lock()
	e.hosts[a.lease] = h
	e.mu.Unlock()
	e.cfg.Mailboxes.Add(h.box)
	a.hosted.Store(h)
	a.made.Store(true)
	h.takeOver()
	if a.stopped.Load() { // whoever did that may not have found it
		h.stop(actorStopped(a.id))
		e.unhost(h)
	}
}

// takeOver takes the calls that came before the actor was made. Those that come later find the lane closed.
func (h *hosted) takeOver() {
	defer close(h.ready)
	l := h.lane
	l.mu.Lock()
	var calls []*direct.Incoming
	for _, it := range l.queue[l.head:] { // at each moment they are among the Holdings
		calls = append(calls, &h.list(it).in)
	}
	clear(l.queue)
	l.queue, l.head, l.closed, l.held = nil, 0, true, false
	l.mu.Unlock()
	h.box.Arrive(ownersChannel, calls)
}

// unhost forgets an instance that has ended: it is not found any more, and its goroutines end when their calls have.
func (e *Executor) unhost(h *hosted) {
	e.cfg.Mailboxes.Remove(h.box)
	e.mu.Lock()
	if e.hosts[h.a.lease] == h {
		delete(e.hosts, h.a.lease)
	}
	e.mu.Unlock()
	h.box.Close()
}

func (e *Executor) allHosted() []*hosted {
	if e.cfg.Mailboxes == nil {
		return nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	out := make([]*hosted, 0, len(e.hosts))
	for _, h := range e.hosts {
		out = append(out, h)
	}
	return out
}

// drain lets the instance run what is in its mailbox, and take no more.
func (h *hosted) drain() {
	h.e.cfg.Mailboxes.Remove(h.box)
	h.box.Tell(direct.Stopping{Drain: true})
}

// stop ends the instance: calls that wait fail with why, and those that run are left behind, their contexts cancelled.
func (h *hosted) stop(why *errs.Error) {
	h.endWith(why, false)
}

// close is the same when the process ends: the owner is told of calls that run when they have returned, and not of those that wait.
func (h *hosted) close() {
	h.endWith(errs.New(errs.CodeShutdown, "the worker is shutting down"), true)
	h.closeChannels()
	h.box.Close()
}

func (h *hosted) endWith(why *errs.Error, closing bool) {
	h.mu.Lock()
	h.stopped, h.closing = true, h.closing || closing
	if h.why == nil {
		h.why = why
	}
	h.mu.Unlock()
	h.e.cfg.Mailboxes.Remove(h.box)
	h.box.Tell(direct.Stopping{})
}

// settle waits until an instance that stops has nothing to run any more and what it has left behind has ended, ctx ends or the executor closes. It tells whether all has
// ended.
func (h *hosted) settle(ctx context.Context) bool {
	h.mu.Lock()
	if h.over && h.awaited == 0 {
		h.mu.Unlock()
		return true
	}
	if h.quiet == nil {
		h.quiet = make(chan struct{})
	}
	quiet := h.quiet
	h.mu.Unlock()
	select {
	case <-quiet:
		return true
	case <-h.e.quit:
	case <-ctx.Done():
	}
	return false
}

// settledLocked tells who waits for it that nothing runs. mu is held.
func (h *hosted) settledLocked() {
	if h.quiet != nil && h.over && h.awaited == 0 {
		close(h.quiet)
		h.quiet = nil
	}
}

// sweep ends goroutines that had nothing to run for a while, and gives up calls that went straight and are past their deadline and its grace. Of the owner's calls it
// says itself which are given up.
func (h *hosted) sweep(now int64) {
	h.box.Sweep(laneLinger)
	h.mu.Lock()
	h.sweepChannelsLocked()
	var late []*direct.Incoming
	for _, r := range h.runs {
		if at := r.cl.ctx.deadline; !r.owned && at != 0 && now >= at+int64(straightGrace) {
			late = append(late, r.in)
		}
	}
	h.mu.Unlock()
	for _, in := range late {
		h.box.Tell(direct.Overdue{Call: in})
	}
}

// stillThere answers the owner's question. Of an instance that has ended it hears, or has heard, that it has.
func (e *Executor) stillThere(m *wire.StillThere) {
	if h := e.hostOf(m.Instance); h != nil && h.lives() {
		e.send(&wire.Lives{Channel: m.Channel})
	}
}

// where asks for calls that the owner has adopted. Of an instance that is gone nobody can say how far they have come.
func (e *Executor) where(m *wire.Where) {
	if e.tellHosted(m.Instance, direct.Where{Channel: direct.Channel(m.Channel), Numbers: m.Numbers}) {
		return
	}
	for _, no := range m.Numbers {
		e.send(&wire.Told{Channel: m.Channel, No: no, Said: wire.SaidBegun})
	}
}

func (e *Executor) tellHosted(i direct.Instance, ev direct.HostEvent) bool {
	h := e.hostOf(i)
	if h != nil {
		h.box.Tell(ev)
	}
	return h != nil
}

func (e *Executor) hostOf(i direct.Instance) *hosted {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.hosts[i]
}

func (h *hosted) lives() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return !h.over && h.why == nil
}
