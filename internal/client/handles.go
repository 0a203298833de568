package client

import (
	"mobula/internal/ids"
	"mobula/wire"
)

// handles has what this process holds, handles and pins, and what it has released but not reported to the node
// yet.
type handles struct {
	table
	releaser
	callers callers
}

// callers has the actors that this process calls straight, and hears of those that nobody else holds any more.
type callers interface{ heldAlone(h *Handle) }

// Handles counts the objects that this process holds.
func (t *handles) Handles() int { return t.table.len() }

// singleReturn is a task's only handle together with the slice that Submit gives.
type singleReturn struct {
	h Handle
	p [1]*Handle
}

// returns makes the handles of a task in one allocation.
func (t *handles) returns(spec *wire.TaskSpec) []*Handle {
	n := int(spec.Opts.NumReturns)
	if n <= 0 {
		return nil
	}
	if n == 1 {
		b := new(singleReturn)
		b.h.of, b.h.id = t, spec.ID.Return(0)
		b.p[0], _ = t.table.adopt(&b.h)
		return b.p[:]
	}
	hs, ps := make([]Handle, n), make([]*Handle, n)
	for i := range hs {
		hs[i].of, hs[i].id = t, spec.ID.Return(i)
		ps[i], _ = t.table.adopt(&hs[i])
	}
	return ps
}

// Promised gives the handle of a result that a task about to be submitted promises (wire.TaskSpec.Promises).
func (t *handles) Promised(id ids.ObjectID) *Handle {
	h, _ := t.table.adopt(&Handle{of: t, id: id})
	return h
}

// EndOfCall makes a call without a result, or a stream, report its end, and gives the handle that is resolved then.
func (t *handles) EndOfCall(spec *wire.TaskSpec) *Handle {
	spec.Promises = endOfCall
	return t.Promised(ids.Derive(spec.ID, uint64(wire.EndOfCall)).Return(0))
}

var endOfCall = []uint32{wire.EndOfCall}

// Weak gives a handle that names an object and does not hold it.
func (t *handles) Weak(id ids.ObjectID) *Handle { return &Handle{of: t, id: id, flags: removed} }

// resolvedHandle enters a handle whose result is known. An entry that is there already
// keeps what it knows; fresh tells that there was none.
func (t *handles) resolvedHandle(id ids.ObjectID, r *wire.Result) (h *Handle, fresh bool) {
	mine := &Handle{of: t, id: id}
	s := t.table.shard(&id)
	s.mu.Lock()
	if h = s.find(&id); h == nil {
		h, fresh = mine, true
		s.put(h)
	}
	h.refs++
	if h.res.Load() == nil {
		h.res.Store(r)
		if r.Kind == wire.ResultInline {
			t.table.remember(s, h)
		}
	}
	s.mu.Unlock()
	if t.table.cacheUsed.Load() > t.table.cacheMax {
		t.table.evict()
	}
	return h, fresh
}

func (t *handles) unread(p *pin) {
	s := t.table.shard(&p.id)
	s.mu.Lock()
	p.users--
	queue := p.users == 0 && !p.queued
	if queue {
		p.queued = true
	}
	s.mu.Unlock()
	if queue {
		t.releaser.unpin(p)
	}
}

// read makes a Data of an object's result and, if it is stored, its pin; the pin counts this reader already.
func (t *handles) read(r *wire.Result, p *pin) Data {
	if p == nil {
		return Data{Value: r.Value, got: true}
	}
	return Data{
		Value: wire.Value{Meta: r.Value.Meta, Data: p.data[:r.Size:r.Size], Refs: r.Value.Refs},
		lease: &reading{of: t, p: p},
		got:   true,
	}
}
