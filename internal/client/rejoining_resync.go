package client

import "mobula/wire"

// resync tells a component that has lost its volatile state what this process holds of it.
func (re *rejoining) resync(m *wire.Resync) {
	if m.Component == wire.ComponentOwner {
		re.straight.ownerLost()
		re.gets.told.ownerLost()
	}
	re.outbox.mu.Lock()
	defer re.outbox.mu.Unlock()
	if m.Component == wire.ComponentOwner {
		_ = re.outbox.writeLocked(nil) // a submit that was kept back goes before them
		re.credit.declares()
	}
	re.declareLocked(m.Component, m.Epoch)
}

// declareLocked sends the holdings. The outbox's lock keeps a release from overtaking the list that still has the
// object.
func (re *rejoining) declareLocked(component wire.Component, epoch uint64) {
	switch component {
	case wire.ComponentOwner:
		_ = re.outbox.writeLocked([]wire.Msg{re.ownerHoldings(epoch)}) // the next connection declares again
		re.actorWatches.watchAgainLocked()
	case wire.ComponentStore:
		_ = re.outbox.writeLocked([]wire.Msg{re.storeHoldings(epoch)})
		re.puts.creates.each(func(q *creation) { _ = re.outbox.writeLocked([]wire.Msg{q.m}) })
	}
}

func (re *rejoining) ownerHoldings(epoch uint64) *wire.Holdings {
	out := &wire.Holdings{Component: wire.ComponentOwner, Epoch: epoch}
	re.handles.table.each(func(_ *shard, h *Handle) {
		if h.unknown() {
			return
		}
		out.Handles = append(out.Handles, h.id)
		if h.flags&asked != 0 {
			out.Gets = append(out.Gets, wire.Get{ID: h.id})
		}
		if h.flags&fetching != 0 {
			out.Gets = append(out.Gets, wire.Get{ID: h.id, Fetch: true})
		}
	})
	re.streams.mu.Lock()
	for k := range re.streams.open {
		out.Streams = append(out.Streams, wire.StreamNext{Task: k.task, Index: k.index, Leaves: true})
	}
	for task := range re.streams.read {
		out.Handles = append(out.Handles, task.Stream())
	}
	re.streams.mu.Unlock()
	if re.cfg.Holdings != nil {
		re.cfg.Holdings(out)
	}
	return out
}

func (re *rejoining) storeHoldings(epoch uint64) *wire.Holdings {
	out := &wire.Holdings{Component: wire.ComponentStore, Epoch: epoch}
	for i := range re.handles.table.shards {
		s := &re.handles.table.shards[i]
		s.mu.Lock()
		for id, p := range s.pins {
			if p.n > 0 {
				out.Pins = append(out.Pins, wire.Unpin{ID: id, N: p.n})
			}
		}
		s.mu.Unlock()
	}
	return out
}
