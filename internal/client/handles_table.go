package client

import (
	"encoding/binary"
	"sync"
	"sync/atomic"

	"mobula/internal/ids"
	"mobula/wire"
)

// table finds handles by id. Ids are hashes already, so a shard is a plain array of
// chains through the handles themselves: an entry costs no allocation of its own.
type table struct {
	shards [shardCount]shard

	cacheMax  int64        // bytes of inline results that are kept
	cacheUsed atomic.Int64 // bytes; summed over all shards
	evictHand atomic.Uint32
}

const (
	shardBits  = 6
	shardCount = 1 << shardBits
)

type shard struct {
	mu      sync.Mutex
	buckets []*Handle // guarded by mu; length a power of two
	n       int       // guarded by mu

	oldest, newest *Handle               // of the cached values; guarded by mu
	pins           map[ids.ObjectID]*pin // guarded by mu

	_ [24]byte // shards of two cores share no cache line
}

// hashOf takes a pointer, since to pass an id is to copy it twice.
func hashOf(id *ids.ObjectID) uint64 {
	return binary.LittleEndian.Uint64(id.Task[12:]) ^ uint64(id.Index)*0x9e3779b97f4a7c15
}

func (t *table) shard(id *ids.ObjectID) *shard {
	return &t.shards[hashOf(id)>>(64-shardBits)]
}

// find gives the entry of id, or nil.
func (s *shard) find(id *ids.ObjectID) *Handle {
	if len(s.buckets) == 0 {
		return nil
	}
	h := s.buckets[hashOf(id)&uint64(len(s.buckets)-1)]
	for h != nil && h.id != *id {
		h = h.next
	}
	return h
}

// put adds h, whose id must not be there.
func (s *shard) put(h *Handle) {
	if 2*s.n >= len(s.buckets) { // sparse: a chain's next handle is a cache miss
		s.grow()
	}
	b := &s.buckets[hashOf(&h.id)&uint64(len(s.buckets)-1)]
	h.next, *b = *b, h
	s.n++
}

func (s *shard) grow() { s.resize(max(16, 2*len(s.buckets))) }

func (s *shard) resize(n int) {
	old := s.buckets
	s.buckets = make([]*Handle, n)
	mask := uint64(n - 1)
	for _, h := range old {
		for h != nil {
			next := h.next
			b := &s.buckets[hashOf(&h.id)&mask]
			h.next, *b = *b, h
			h = next
		}
	}
}

// remove takes h out. The array shrinks when it is nearly empty, so that a burst of
// handles does not keep its memory.
func (s *shard) remove(h *Handle) {
	p := &s.buckets[hashOf(&h.id)&uint64(len(s.buckets)-1)]
	for *p != h {
		p = &(*p).next
	}
	*p = h.next
	h.next = nil
	h.flags |= removed
	h.call.Store(nil)
	s.n--
	if len(s.buckets) > 64 && s.n < len(s.buckets)/16 {
		s.resize(len(s.buckets) / 4)
	}
}

// adopt makes h the entry of its id with one user, or adds a user to the entry that is
// there and returns that. fresh tells which.
func (t *table) adopt(h *Handle) (entry *Handle, fresh bool) {
	s := t.shard(&h.id)
	s.mu.Lock()
	if old := s.find(&h.id); old != nil {
		old.refs++
		s.mu.Unlock()
		return old, false
	}
	h.refs = 1
	s.put(h)
	s.mu.Unlock()
	return h, true
}

// drop takes a queued handle out of the table, unless it is used again.
func (t *table) drop(h *Handle) bool {
	s := t.shard(&h.id)
	s.mu.Lock()
	defer s.mu.Unlock()
	return t.dropLocked(s, h)
}

func (t *table) dropLocked(s *shard, h *Handle) bool {
	h.flags &^= queued
	if h.refs > 0 || h.wait != nil || h.flags&removed != 0 {
		return false
	}
	t.forget(s, h)
	s.remove(h)
	return true
}

// each calls f for every handle, shard by shard, under the shard's lock.
func (t *table) each(f func(s *shard, h *Handle)) {
	for i := range t.shards {
		s := &t.shards[i]
		s.mu.Lock()
		for _, h := range s.buckets {
			for h != nil {
				next := h.next
				f(s, h)
				h = next
			}
		}
		s.mu.Unlock()
	}
}

// Len counts the handles.
func (t *table) len() int {
	n := 0
	for i := range t.shards {
		s := &t.shards[i]
		s.mu.Lock()
		n += s.n
		s.mu.Unlock()
	}
	return n
}

func inlineCost(r *wire.Result) int64 { return int64(len(r.Value.Data)+len(r.Value.Meta)) + 128 }
