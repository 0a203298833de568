package client

import (
	"mobula/internal/ids"
	"mobula/wire"
)

// This file is the handles of calls that go straight. What the owner does not know of it is not asked for, and is not told the release of.

// comes notes that an object's result comes without being asked for.
func (h *Handle) comes(m *message) {
	s := h.of.table.shard(&h.id)
	s.mu.Lock()
	defer s.mu.Unlock()
	h.call.Store(m)
	h.flags |= comes
}

// Passed is the object's id, to be passed on: the owner knows the object from then on, or is told before all that follows.
func (h *Handle) Passed() ids.ObjectID {
	if m := h.call.Load(); m != nil {
		_ = m.Announce() // which gives none
	}
	return h.id
}

// unknown tells whether the owner does not know the object.
func (h *Handle) unknown() bool {
	m := h.call.Load()
	return m != nil && !m.told.Load()
}

// isTask makes a handle one of a task that was submitted: what somebody waits for is asked for, and where it is the one that ends it, that too. It gives what is to be
// sent.
func (m *message) isTask(h, ends *Handle) (msgs []wire.Msg) {
	watch := h == ends
	s := h.of.table.shard(&h.id)
	s.mu.Lock()
	defer s.mu.Unlock()
	h.flags &^= comes
	if watch {
		h.wait = &waitNode{h: h, next: h.wait, call: m}
	}
	if h.flags&removed != 0 && !watch {
		return []wire.Msg{&wire.Release{IDs: []ids.ObjectID{h.id}}} // nobody wants it: the submit gave a handle
	}
	if h.flags&removed != 0 {
		h.flags &^= removed
		s.put(h) // until it is answered
	}
	bit := flags(0)
	for n := h.wait; n != nil; n = n.next {
		if bit |= asked; n.fetch {
			bit |= fetching
		}
	}
	h.flags |= bit
	if bit&asked != 0 {
		msgs = append(msgs, &wire.Get{ID: h.id})
	}
	if bit&fetching != 0 {
		msgs = append(msgs, &wire.Get{ID: h.id, Fetch: true})
	}
	return msgs
}

// resolve records what a call that went straight has come to. Who waits for bytes that are stored has them fetched.
func (s *straight) resolve(h *Handle, r *wire.Result) {
	sh := s.handles.table.shard(&h.id)
	sh.mu.Lock()
	h.flags &^= comes
	fetch := false
	if r.Kind == wire.ResultStored {
		for n := h.wait; n != nil; n = n.next {
			fetch = fetch || n.fetch
		}
		if fetch {
			h.flags |= fetching
		}
	}
	s.gets.settle(sh, h, &wire.Resolved{ID: h.id}, r, nil, nil)
	if fetch {
		_ = s.outbox.send(&wire.Get{ID: h.id, Fetch: true})
	}
}

// mayForget lists a result among those that may be dropped here, since the owner has it too.
func (t *handles) mayForget(h *Handle) {
	s := t.table.shard(&h.id)
	s.mu.Lock()
	defer s.mu.Unlock()
	if r := h.res.Load(); r != nil && r.Kind == wire.ResultInline && h.flags&removed == 0 {
		t.table.remember(s, h)
	}
}

// partsStraight lets go of an unused handle of a call that went straight. It is false where the owner knows the object, and is to be told.
func (h *Handle) partsStraight() bool {
	m := h.call.Load()
	if m == nil {
		return false
	}
	s := h.of.table.shard(&h.id)
	s.mu.Lock()
	told := m.told.Load() // under the lock: see letGone
	if !told && !h.of.table.dropLocked(s, h) {
		s.mu.Unlock()
		return true // it is used again
	}
	first := h.flags&parted == 0 && m.end != h
	if first {
		h.flags |= parted
	}
	s.mu.Unlock()
	if first && m.left.Add(-1) == 0 {
		m.Released()
		m.letInner()
	}
	return !told
}

// letGone lets go of what the owner gives a call's process with the first word of it, and nobody here holds any more: of its release the owner was not told.
func (m *message) letGone() {
	var gone []ids.ObjectID
	add := func(h *Handle) {
		s := h.of.table.shard(&h.id)
		s.mu.Lock()
		defer s.mu.Unlock()
		if h.flags&removed != 0 {
			gone = append(gone, h.id)
		}
	}
	for _, h := range m.hs {
		add(h)
	}
	if m.end != nil {
		add(m.end)
	}
	if len(gone) > 0 {
		_ = m.tc.Client.straight.outbox.send(&wire.Release{IDs: gone}) // a dead connection has no handles
	}
}

// letInner lets go of what the results have references to, once.
func (m *message) letInner() {
	if inner := m.inner.Swap(nil); inner != nil {
		for _, h := range *inner {
			h.Release()
		}
	}
}

// retain adds a user to the entry of an object that has some, and marks it; nil: it has none.
func (t *table) retain(id ids.ObjectID, mark flags) *Handle {
	s := t.shard(&id)
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.find(&id)
	if h == nil || h.refs <= 0 {
		return nil
	}
	h.refs++
	h.flags |= mark
	return h
}

func (h *Handle) unmark(mark flags) {
	s := h.of.table.shard(&h.id)
	s.mu.Lock()
	defer s.mu.Unlock()
	h.flags &^= mark
}
