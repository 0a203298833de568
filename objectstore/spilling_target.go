package objectstore

// SetMemoryTarget says how many bytes of memory the store may have behind it for now; 0: all of its limit. The node's memory monitor sends it where
// the node has a memory limit: when the processes' heaps grow, the store shrinks. What is pinned or being written stays, and nothing
// waits that could not wait for a spill anyway: room changes what lies on disk, not what can be done.
type SetMemoryTarget struct{ Bytes uint64 }

func (SetMemoryTarget) storeEvent() {}

// maxPunchBytes is given back between two messages.
const maxPunchBytes = 32 << 20

// overTarget tells whether so many bytes more would be more than the store has room for, and it can do something about it.
func (sl *spilling) overTarget(need uint64) bool {
	if sl.space.memoryTarget == 0 || sl.space.alloc.Held()+need <= sl.space.memoryTarget {
		return false
	}
	return sl.objects.second.head != nil || sl.spills > 0 || sl.objects.cold.n > 0 && sl.progress.canSpill()
}

// shrinkToTarget brings the memory behind the store below its room: copies that are on disk go, cold objects are
// spilled, and what is free is given back.
func (sl *spilling) shrinkToTarget() {
	if sl.space.memoryTarget == 0 || sl.space.alloc.Backed() <= sl.space.memoryTarget {
		return
	}
	for sl.space.alloc.Held() > sl.space.memoryTarget && sl.objects.second.head != nil {
		sl.counts.Evictions++
		sl.objects.evict(sl.objects.second.head)
	}
	if held := sl.space.alloc.Held(); held > sl.space.memoryTarget {
		sl.spill(held-sl.space.memoryTarget, true)
	}
	if over := sl.space.alloc.Backed() - sl.space.memoryTarget; sl.space.reserving == 0 && sl.space.alloc.Warm() > 0 {
		if rs := sl.space.alloc.Release(0, min(over, maxPunchBytes)); len(rs) > 0 {
			sl.emit(Punch{rs})
			sl.wakeAt(sl.now + 1e6)
		}
	}
}
