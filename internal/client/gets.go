package client

import (
	"context"
	"sync"
	"time"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/wire"
)

// gets has the goroutines that wait for objects, and answers them.
type gets struct {
	*base
	memory  *memory
	handles *handles
	outbox  *outbox
	told    *toldWaits
	waiters sync.Pool // of *waiter
	soon    longWaits // for told
	long    longWaits
}

// Get gives the values of objects, in order, and waits until all are there or one has
// failed. Stored values are pinned until Data.Release. On an error nothing is pinned and
// the handles stay valid: the object's own *errs.Error, ErrGetTimeout if ctx reached its deadline, the cause of
// ctx, ErrFetchTimedOut, ErrShutdown or ErrOwnerDied.
func (g *gets) Get(ctx context.Context, hs ...*Handle) ([]Data, error) {
	out := make([]Data, len(hs))
	pending := 0
	for i, h := range hs {
		ok, err := g.known(h, &out[i])
		if err != nil {
			release(out[:i])
			return nil, err
		}
		if !ok {
			pending++
		}
	}
	if pending == 0 {
		return out, nil
	}
	if err := g.fetch(ctx, hs, out, pending); err != nil {
		release(out)
		return nil, err
	}
	return out, nil
}

// Get1 is Get of one object.
func (g *gets) Get1(ctx context.Context, h *Handle) (Data, error) {
	var out [1]Data
	ok, err := g.known(h, &out[0])
	if ok || err != nil {
		return out[0], err
	}
	hs := [1]*Handle{h}
	err = g.fetch(ctx, hs[:], out[:], 1)
	return out[0], err
}

func release(ds []Data) {
	for _, d := range ds {
		d.Release()
	}
}

// known answers from what this process knows, without a lock where the value is inline.
func (g *gets) known(h *Handle, out *Data) (bool, error) {
	r := h.res.Load()
	if r == nil {
		return false, nil
	}
	switch r.Kind {
	case wire.ResultInline:
		out.Value, out.got = r.Value, true
		return true, nil
	case wire.ResultError:
		return false, failureOf(h.id, r)
	}
	s := g.handles.table.shard(&h.id)
	s.mu.Lock()
	p := s.readable(h.id)
	if p == nil {
		s.mu.Unlock()
		return false, nil
	}
	p.users++
	s.mu.Unlock()
	*out = g.handles.read(r, p)
	return true, nil
}

// fetch asks for what is missing in one batch and waits for it.
func (g *gets) fetch(ctx context.Context, hs []*Handle, out []Data, pending int) error {
	if err := g.Err(); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return ctxError(ctx)
	}
	w := g.waiter()
	nodes := w.nodes(pending)[:0]
	w.left.Store(int32(pending) + 1) // one is our own: nothing wakes us while we link
	var gets []wire.Get
	var err error
	for i, h := range hs {
		if out[i].got {
			continue
		}
		nodes = nodes[:len(nodes)+1]
		n := &nodes[len(nodes)-1] // a new one, or cleared by free
		n.w, n.h, n.i, n.fetch = w, h, i, true
		var ask bool
		if ask, err = g.link(n); err != nil {
			nodes = nodes[:len(nodes)-1]
			break
		}
		if ask {
			if gets == nil {
				gets = make([]wire.Get, 0, pending)
			}
			gets = append(gets, wire.Get{ID: h.id, Fetch: true})
		}
	}
	if asked := g.outbox.ask(gets); err == nil { // also those before a released one: they count as asked
		err = asked
	}
	if err == nil && w.left.Add(-1) > 0 {
		err = g.await(ctx, w, nodes)
	}
	return g.collectNodes(w, nodes, out, err)
}

// link puts n on its handle's list, or finishes it at once if the result is known. ask tells that a Get must be
// sent.
func (g *gets) link(n *waitNode) (ask bool, err error) {
	h := n.h
	s := g.handles.table.shard(&h.id)
	s.mu.Lock()
	defer s.mu.Unlock()
	if h.refs <= 0 {
		return false, errs.New(errs.CodeObjectFreed, "object %v: this reference was released", h.id)
	}
	if r := h.res.Load(); r != nil {
		if r.Kind != wire.ResultStored || !n.fetch {
			n.finish(r, nil, nil)
			return false, nil
		}
		if p := s.readable(h.id); p != nil {
			p.users++
			n.finish(r, p, nil)
			return false, nil
		}
		n.storedAt = time.Now()
	}
	n.next, h.wait = h.wait, n
	bit := asked
	if n.fetch {
		bit = fetching
	}
	if h.flags&comes != 0 {
		return false, nil
	}
	if h.flags&bit != 0 || (!n.fetch && h.flags&fetching != 0) {
		return false, nil
	}
	h.flags |= bit
	return true, nil
}

// collectNodes turns finished nodes into values, or gives their pins back if the wait
// failed, and frees the waiter.
func (g *gets) collectNodes(w *waiter, nodes []waitNode, out []Data, err error) error {
	if err != nil || w.left.Load() > 0 { // else all are done, and stay so
		g.unlink(nodes)
	}
	for i := range nodes {
		n := &nodes[i]
		if !n.done {
			continue
		}
		switch {
		case n.err != nil:
			if err == nil {
				err = n.err
			}
		case n.res.Kind == wire.ResultError:
			if err == nil {
				err = failureOf(n.h.id, n.res)
			}
		default:
			out[n.i] = g.handles.read(n.res, n.pin)
		}
	}
	if err != nil {
		g.unlink(nodes) // the last one to come may be about to wake us too
		release(out)
	}
	g.free(w)
	return err
}

// resolved takes the owner's or the store's answer to a Get.
func (g *gets) resolved(m *wire.Resolved) {
	r := &m.Result
	if r.Kind == wire.ResultNone {
		r = &wire.Result{Kind: wire.ResultError, Err: errs.New(errs.CodeProtocol, "object %v: the node answered with no result", m.ID)}
	}
	var data []byte
	var mapErr error
	stored := r.Kind == wire.ResultStored && m.Fetch
	if stored {
		if data, mapErr = g.memory.mem().Map(m.Extent, false); mapErr == nil && uint64(len(data)) < r.Size {
			mapErr = errs.New(errs.CodeProtocol, "object %v: the extent has %d bytes, the object %d", m.ID, len(data), r.Size)
		}
	}
	s := g.handles.table.shard(&m.ID)
	s.mu.Lock()
	h := s.find(&m.ID)
	if h == nil {
		s.mu.Unlock()
		if stored {
			g.unpinLate(m.ID, data)
		}
		return
	}
	g.settle(s, h, m, r, data, mapErr)
}

// settle records a result and wakes its waiters. It unlocks s.mu.
func (g *gets) settle(s *shard, h *Handle, m *wire.Resolved, r *wire.Result, data []byte, mapErr error) {
	if m.Fetch {
		h.flags &^= fetching
	} else {
		h.flags &^= asked
	}
	if old := h.res.Load(); old == nil {
		h.res.Store(r)
		h.flags |= settled
		if r.Kind == wire.ResultInline && !h.unknown() {
			g.handles.table.remember(s, h)
		}
	} else if old.Kind == wire.ResultStored && r.Kind == wire.ResultStored && r.Value.Refs == nil && old.Value.Refs != nil {
		with := *r // the store does not know references; the owner told us before
		with.Value.Refs = old.Value.Refs
		r = &with
	}
	stored := r.Kind == wire.ResultStored
	var p *pin
	if stored && m.Fetch {
		p = s.pinned(m.ID, data, 0)
	}
	var keep *waitNode
	for n := h.wait; n != nil; {
		next := n.next
		switch {
		case stored && n.fetch && !m.Fetch: // known to be stored now; its bytes are on the way
			n.next, keep = keep, n
		case mapErr != nil && n.fetch:
			n.finish(r, nil, mapErr)
		case stored && n.fetch:
			p.users++
			n.finish(r, p, nil)
		default:
			n.finish(r, nil, nil)
		}
		n = next
	}
	h.wait = keep
	unpin := p != nil && p.users == 0 && !p.queued
	if unpin {
		p.queued = true
	}
	queue := s.queueIfUnused(h)
	s.mu.Unlock()
	if unpin {
		g.handles.releaser.unpin(p)
	}
	if queue {
		g.handles.releaser.release(h)
	}
	if r.Kind == wire.ResultInline && g.handles.table.cacheUsed.Load() > g.handles.table.cacheMax {
		g.handles.table.evict()
	}
}

// unpinLate unpins an object that arrived after its reader had left.
func (g *gets) unpinLate(id ids.ObjectID, data []byte) {
	s := g.handles.table.shard(&id)
	s.mu.Lock()
	p := s.pinned(id, data, 0)
	queue := p.users == 0 && !p.queued
	if queue {
		p.queued = true
	}
	s.mu.Unlock()
	if queue {
		g.handles.releaser.unpin(p)
	}
}

// failureOf is the error that an object was resolved with.
func failureOf(id ids.ObjectID, r *wire.Result) error {
	if r.Err == nil {
		return errs.New(errs.CodeProtocol, "object %v failed, and the node did not say why", id)
	}
	return r.Err
}
