package objectstore

// SetRoom says how many bytes of memory the store may have behind it for now; 0: all of its limit. The node's memory monitor sends it where
// the node has a memory limit: when the processes' heaps grow, the store gives way. What is pinned or being written stays, and nothing
// waits that could not wait for a spill anyway: room changes what lies on disk, not what can be done.
type SetRoom struct{ Bytes uint64 }

func (SetRoom) storeEvent() {}

// punchMost is given back between two messages.
const punchMost = 32 << 20

// tight tells whether so many bytes more would be more than the store has room for, and it can do something about it.
func (c *Core) tight(need uint64) bool {
	if c.room == 0 || c.alloc.Held()+need <= c.room {
		return false
	}
	return c.second.head != nil || c.spills > 0 || c.cold.n > 0 && c.canSpill()
}

// giveWay brings the memory behind the store below its room: copies that are on disk go, cold objects are
// spilled, and what is free is given back.
func (c *Core) giveWay() {
	if c.room == 0 || c.alloc.Backed() <= c.room {
		return
	}
	for c.alloc.Held() > c.room && c.second.head != nil {
		c.counts.Evictions++
		c.evict(c.second.head)
	}
	if held := c.alloc.Held(); held > c.room {
		c.spill(held-c.room, true)
	}
	if over := c.alloc.Backed() - c.room; c.reserving == 0 && c.alloc.Warm() > 0 {
		if rs := c.alloc.Release(0, min(over, punchMost)); len(rs) > 0 {
			c.emit(Punch{rs})
			c.wakeAt(c.now + 1e6)
		}
	}
}
