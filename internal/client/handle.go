package client

import (
	"sync/atomic"

	"mobula/internal/ids"
	"mobula/wire"
)

// Handle is this process' hold on an object. Each process has one for each object; it counts its users, and after
// the last Release the owner is told.
type Handle struct {
	of   *handles
	next *Handle   // of its bucket; guarded by the shard's mu
	wait *waitNode // the waiters; guarded by the shard's mu

	// res is the object's result: nil if it is not resolved, or its value was evicted. What it points to never
	// changes.
	res atomic.Pointer[wire.Result]

	older, newer *Handle // in the shard's list of cached values; guarded by the shard's mu

	call atomic.Pointer[message] // that it is a result of, where that went straight and somebody here holds it

	id    ids.ObjectID
	refs  int32 // guarded by the shard's mu
	flags flags // guarded by the shard's mu
}

type flags uint16

const (
	asked    flags = 1 << iota // a Get without fetch is under way
	fetching                   // a Get with fetch is under way
	queued                     // in the release queue
	removed                    // no longer in the table: the owner was told
	cached                     // in the list of cached values
	comes                      // its result comes without being asked for: a call has it that goes straight
	parted                     // its call was told that nobody here holds it
	settled                    // its result was known once; the cached value may be dropped
	called                     // one of its users is what calls this actor straight (straight.Holds)
)

// ID is the object's id.
func (h *Handle) ID() ids.ObjectID { return h.id }

// Retain adds a user and returns h. The caller must be a user itself.
func (h *Handle) Retain() *Handle {
	s := h.of.table.shard(&h.id)
	s.mu.Lock()
	h.refs++
	s.mu.Unlock()
	return h
}

// Release ends one user's hold. After the last one the owner is told, in a batch.
func (h *Handle) Release() {
	s := h.of.table.shard(&h.id)
	s.mu.Lock()
	if h.refs <= 0 { // one Release too many: the entry is gone, or another handle has it
		s.mu.Unlock()
		return
	}
	h.refs--
	queue := s.queueIfUnused(h)
	alone := h.refs == 1 && h.flags&called != 0
	s.mu.Unlock()
	if alone {
		h.of.callers.heldAlone(h)
	}
	if queue {
		h.of.releaser.release(h)
	}
}

// Ready tells whether the object was resolved, as far as this process knows.
func (h *Handle) Ready() bool { return h.res.Load() != nil }

// awaited tells whether somebody holds the object and its result is not known yet.
func (h *Handle) awaited() bool {
	s := h.of.table.shard(&h.id)
	s.mu.Lock()
	defer s.mu.Unlock()
	return h.refs > 0 && h.flags&(settled|removed) == 0
}

// queueIfUnused marks h for the release queue if nobody uses it or waits for it and it
// is not there already.
func (s *shard) queueIfUnused(h *Handle) bool {
	if h.refs > 0 || h.wait != nil || h.flags&(queued|removed) != 0 {
		return false
	}
	h.flags |= queued
	return true
}
