package client

import "mobula/wire"

// resync answers a component that has lost its volatile state with what this process
// holds of it.
func (c *Client) resync(m *wire.Resync) {
	if m.Component == wire.ComponentOwner {
		c.credit.refill()
	}
	c.out.mu.Lock()
	defer c.out.mu.Unlock()
	c.declareLocked(m.Component, m.Epoch)
}

// declareLocked sends the holdings. The outbox's lock keeps a release from overtaking
// the list in which the object still stands.
func (c *Client) declareLocked(component wire.Component, epoch uint64) {
	switch component {
	case wire.ComponentOwner:
		_ = c.writeLocked([]wire.Msg{c.ownerHoldings(epoch)}) // a dead connection is declared again
		c.watchAgainLocked()
	case wire.ComponentStore:
		_ = c.writeLocked([]wire.Msg{c.storeHoldings(epoch)})
		c.creates.each(func(q *creation) { _ = c.writeLocked([]wire.Msg{q.m}) })
	}
}

func (c *Client) ownerHoldings(epoch uint64) *wire.Holdings {
	out := &wire.Holdings{Component: wire.ComponentOwner, Epoch: epoch}
	c.table.each(func(_ *shard, h *Handle) {
		out.Handles = append(out.Handles, h.id)
		if h.flags&asked != 0 {
			out.Gets = append(out.Gets, wire.Get{ID: h.id})
		}
		if h.flags&fetching != 0 {
			out.Gets = append(out.Gets, wire.Get{ID: h.id, Fetch: true})
		}
	})
	c.streams.mu.Lock()
	for k := range c.streams.open {
		out.Streams = append(out.Streams, wire.StreamNext{Task: k.task, Index: k.index})
	}
	for task := range c.streams.read {
		out.Handles = append(out.Handles, task.Stream())
	}
	c.streams.mu.Unlock()
	if c.cfg.Holdings != nil {
		c.cfg.Holdings(out)
	}
	return out
}

func (c *Client) storeHoldings(epoch uint64) *wire.Holdings {
	out := &wire.Holdings{Component: wire.ComponentStore, Epoch: epoch}
	for i := range c.table.shards {
		s := &c.table.shards[i]
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
