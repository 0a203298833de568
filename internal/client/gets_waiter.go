package client

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/wire"
)

// waiter is a goroutine that waits for any number of objects. Its channel is reused.
type waiter struct {
	Token
	timer *time.Timer  // of a wait that is brief at first; nil: it had none
	left  atomic.Int32 // objects to come before it is woken
	woken atomic.Bool  // what it waits for is there
	late  atomic.Bool  // it has waited long; set by longWaits
	one   [1]waitNode

	before, behind *waiter   // among those that are parked; guarded by longWaits.mu
	begun          time.Time // of its wait, or a little earlier; set by longWaits before late is
	due            time.Time // guarded by longWaits.mu: when it has waited long
}

// Token wakes a goroutine, which looks around then: a token may also come late, for who has waited in its place before.
type Token struct{ ch chan struct{} } // capacity 1

// Give does not block.
func (t *Token) Give() {
	select {
	case t.ch <- struct{}{}:
	default:
	}
}

// waitNode is one object that a waiter waits for. Until it is done it belongs to the shard (guarded by its mu),
// then to the waiter.
type waitNode struct {
	w     *waiter
	h     *Handle
	next  *waitNode
	i     int // the caller's index of the object
	fetch bool
	done  bool
	res   *wire.Result
	pin   *pin // counts this reader
	err   error

	storedAt time.Time // when the waiter first saw that the object is stored
	watcher  *Watcher  // is told instead of w, unless nil
	call     *message  // the same
	argOf    *message  // the same: it is the i-th of its references
}

func (g *gets) waiter() *waiter {
	if w, ok := g.waiters.Get().(*waiter); ok {
		return w
	}
	return &waiter{Token: Token{ch: make(chan struct{}, 1)}}
}

// free gives w back to the pool. None of its nodes may be linked.
func (g *gets) free(w *waiter) {
	select {
	case <-w.ch:
	default:
	}
	w.woken.Store(false)
	w.one[0] = waitNode{}
	g.waiters.Put(w)
}

func (w *waiter) nodes(n int) []waitNode {
	if n == 1 {
		return w.one[:]
	}
	return make([]waitNode, n)
}

func (w *waiter) signal() {
	w.woken.Store(true)
	w.Give()
}

// finish ends a node; it wakes the waiter with the last one, or at once on an error. The
// shard's mu is held, and the node is off the handle's list.
func (n *waitNode) finish(res *wire.Result, p *pin, err error) {
	w := n.w
	n.res, n.pin, n.err = res, p, err
	n.done = true
	n.next = nil
	if n.call != nil {
		n.call.answered()
		return
	}
	if n.argOf != nil {
		n.argOf.argument(n.i, res)
		return
	}
	if n.watcher != nil {
		n.watcher.resolved(n.i, res)
		return
	}
	failed := n.fetch && (err != nil || res.Kind == wire.ResultError)
	if w.left.Add(-1) == 0 || failed {
		w.signal()
	}
}

// await blocks until w is woken, ctx ends, the client fails or a fetch has taken too
// long. The task is reported as blocked meanwhile.
func (g *gets) await(ctx context.Context, w *waiter, nodes []waitNode) error {
	if w.woken.Load() { // it came while we were asking
		return nil
	}
	g.waits()
	if tc := FromContext(ctx); tc != nil && tc.Blocker != nil {
		if tc.calls.Load() == 0 && g.waitBriefly(ctx, w) {
			return nil
		}
		tc.Blocker.Blocked(ctx, needs(nodes))
		defer tc.Blocker.Unblocked(ctx)
	}
	return g.park(ctx, w, nodes)
}

const tellNeeds = 8 // a get of more objects does not name them, and is not checked for a deadlock

// needs gives the objects that a get needs all of.
func needs(nodes []waitNode) []ids.ObjectID {
	if len(nodes) > tellNeeds || !nodes[0].fetch { // a Wait goes on when some are there
		return nil
	}
	out := make([]ids.ObjectID, len(nodes))
	for i := range nodes {
		if nodes[i].h.isStraight() {
			return nil // toldWaits tells of that
		}
		out[i] = nodes[i].h.id
	}
	return out
}

// blockedAfter is how long a task that has called nothing waits before it gives its CPU back. The object that it
// waits for is usually there and only has to be fetched, which is faster than to give the CPU back and get it
// again. A task that has called another waits for that one, which may need the CPU.
const blockedAfter = time.Millisecond

// waitBriefly waits for blockedAfter; false if w was not woken.
func (g *gets) waitBriefly(ctx context.Context, w *waiter) bool {
	if w.timer == nil {
		w.timer = time.NewTimer(blockedAfter)
	} else {
		w.timer.Reset(blockedAfter)
	}
	defer w.timer.Stop()
	select {
	case <-w.ch:
	case <-w.timer.C:
	case <-ctx.Done():
	case <-g.dead:
	}
	return w.Woken()
}

// Woken tells that what it waits for is there.
func (w *waiter) Woken() bool { return w.woken.Load() }

func (g *gets) park(ctx context.Context, w *waiter, nodes []waitNode) error {
	if l := g.cfg.Lender; l != nil {
		if l.Read(ctx, w) {
			return nil
		}
		defer l.Woken()
	}
	list, told := &g.long, uint64(0)
	tells := g.told.sees(ctx, nodes)
	if tells {
		list = &g.soon
	}
	list.add(w)
	giver, gives := ctx.(Giver)
	var done <-chan struct{}
	if gives {
		done, gives = giver.Gives(&w.Token)
	}
	if !gives {
		done = ctx.Done()
	}
	defer func() {
		if list.remove(w); told > 0 {
			g.told.over(told)
		}
		if gives {
			giver.GivesNoMore()
		}
	}()
	for {
		if done == nil {
			<-w.ch
		} else {
			select {
			case <-w.ch:
			case <-done:
				return ctxError(ctx)
			}
		}
		if w.woken.Load() {
			return nil
		}
		if err := g.Err(); err != nil { // whose end closes the lists
			return err
		}
		if gives && ctx.Err() != nil {
			return ctxError(ctx)
		}
		switch {
		case !w.late.Swap(false):
		case tells:
			tells, told = false, g.told.begin(ctx, nodes)
			list.remove(w)
			list = &g.long
			list.add(w)
		default:
			if err := g.overdue(ctx, nodes, w.begun, time.Now()); err != nil {
				return err
			}
		}
	}
}

// ctxError says why a wait was given up: ErrGetTimeout for a deadline, else ErrCancelled, with the cause that the program gave, if any.
func ctxError(ctx context.Context) error {
	cause := context.Cause(ctx)
	if errors.Is(cause, errs.ErrCancelled) || errors.Is(cause, errs.ErrDeadline) {
		return cause
	}
	why := errs.New(errs.CodeCancelled, "the wait was given up: its context was cancelled")
	if ctx.Err() == context.DeadlineExceeded {
		why = errs.New(errs.CodeGetTimeout, "the context's deadline passed before every object was there")
	}
	if cause == ctx.Err() {
		return why
	}
	return fmt.Errorf("%w: %w", why, cause)
}

// overdue logs the objects that a waiter still lacks, asks the owner which of them are stored, and fails the wait
// if a stored object could not be fetched for too long.
func (g *gets) overdue(ctx context.Context, nodes []waitNode, begun, now time.Time) error {
	var missing []ids.ObjectID
	var probes []wire.Msg
	count := 0
	for i := range nodes {
		n := &nodes[i]
		s := g.handles.table.shard(&n.h.id)
		s.mu.Lock()
		if n.done {
			s.mu.Unlock()
			continue
		}
		count++
		if len(missing) < 3 {
			missing = append(missing, n.h.id)
		}
		r := n.h.res.Load()
		if n.fetch && r == nil && n.h.flags&(asked|comes) == 0 {
			n.h.flags |= asked
			probes = append(probes, &wire.Get{ID: n.h.id})
		}
		if n.fetch && r != nil && r.Kind == wire.ResultStored && n.storedAt.IsZero() {
			n.storedAt = now
		}
		late := !n.storedAt.IsZero() && now.Sub(n.storedAt) >= g.cfg.FetchTimeout
		s.mu.Unlock()
		if late {
			return errs.New(errs.CodeFetchTimedOut, "object %v (%d bytes) is stored, but its bytes did not come within %v: is its node or disk stuck? %s", n.h.id, r.Size, g.cfg.FetchTimeout, g.explain(ctx, n.h.id))
		}
	}
	if count == 0 {
		return nil
	}
	_ = g.outbox.Send(probes...) // where the connection is gone, the wait fails by itself
	attrs := []any{"waited", now.Sub(begun).Round(time.Second).String(), "missing", count, "objects", missing}
	if why := g.explain(ctx, missing[0]); why != "" {
		attrs = append(attrs, "why", why)
	}
	g.log.Warn("a get waits long", attrs...)
	return nil
}

// explain asks why an object is not there, for a short time.
func (g *gets) explain(ctx context.Context, id ids.ObjectID) string {
	if g.cfg.Explain == nil {
		return ""
	}
	short, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	return g.cfg.Explain(short, id)
}

// unlink removes the nodes that are not done from their handles and withdraws Gets that nobody waits for any more.
func (g *gets) unlink(nodes []waitNode) {
	var unused []*Handle
	if len(nodes) > 0 && nodes[0].fetch {
		unused = g.withdraw(nodes)
	} else {
		unused, _ = g.unlinkNodes(nodes)
	}
	for _, h := range unused {
		g.handles.releaser.release(h)
	}
}

// withdraw is unlink for nodes that fetch. An Unget withdraws all Gets of this client for the object. Messages are
// in order, so a later Get of the same object is sent after it and stays.
func (g *gets) withdraw(nodes []waitNode) []*Handle {
	g.outbox.mu.Lock()
	defer g.outbox.mu.Unlock()
	unused, msgs := g.unlinkNodes(nodes)
	if len(msgs) > 0 {
		_ = g.outbox.sendLocked(msgs) // a dead connection waits for nothing
	}
	return unused
}

// unlinkNodes gives the handles that nobody uses any more, and the messages to send.
func (g *gets) unlinkNodes(nodes []waitNode) (unused []*Handle, msgs []wire.Msg) {
	for i := range nodes {
		n := &nodes[i]
		s := g.handles.table.shard(&n.h.id)
		s.mu.Lock()
		if n.done {
			s.mu.Unlock()
			continue
		}
		others := false
		for p := &n.h.wait; *p != nil; {
			if *p == n {
				*p = n.next
				continue
			}
			others = others || (*p).fetch
			p = &(*p).next
		}
		if n.fetch && !others && n.h.flags&fetching != 0 {
			n.h.flags &^= fetching | asked
			msgs = append(msgs, &wire.Unget{ID: n.h.id})
			if n.h.wait != nil { // others wait too, and relied on the Get that is withdrawn
				n.h.flags |= asked
				msgs = append(msgs, &wire.Get{ID: n.h.id})
			}
		}
		if s.queueIfUnused(n.h) {
			unused = append(unused, n.h)
		}
		s.mu.Unlock()
	}
	return unused, msgs
}
