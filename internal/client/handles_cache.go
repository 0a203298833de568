package client

// Handles keep the values of inline results, up to a bound in bytes over all handles. Beyond it the oldest are
// dropped, and a Get asks the owner again. Errors, and results of stored objects, are small and stay.

// remember lists h's inline result as cached. The shard's mu is held.
func (t *table) remember(s *shard, h *Handle) {
	if h.flags&cached != 0 {
		return
	}
	h.flags |= cached
	h.older, h.newer = s.newest, nil
	if s.newest != nil {
		s.newest.newer = h
	} else {
		s.oldest = h
	}
	s.newest = h
	t.cacheUsed.Add(inlineCost(h.res.Load()))
}

// forget removes h from the list; its value goes with the last reader. The shard's mu is held.
func (t *table) forget(s *shard, h *Handle) {
	if h.flags&cached == 0 {
		return
	}
	h.flags &^= cached
	if h.older != nil {
		h.older.newer = h.newer
	} else {
		s.oldest = h.newer
	}
	if h.newer != nil {
		h.newer.older = h.older
	} else {
		s.newest = h.older
	}
	h.older, h.newer = nil, nil
	t.cacheUsed.Add(-inlineCost(h.res.Load()))
}

// evict brings the cache back under its bound. No lock is held.
func (t *table) evict() {
	for i := 0; i < shardCount && t.cacheUsed.Load() > t.cacheMax; i++ {
		s := &t.shards[t.evictHand.Add(1)%shardCount]
		s.mu.Lock()
		// An eighth of a shard's share at a time, so that no shard loses everything.
		goal := t.cacheUsed.Load() - max(t.cacheMax/shardCount/8, 1)
		for s.oldest != nil && t.cacheUsed.Load() > goal {
			h := s.oldest
			t.forget(s, h)
			h.res.Store(nil)
			i = 0
		}
		s.mu.Unlock()
	}
}
