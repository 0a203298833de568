package objectstore

// What is spilled next: the head of the list of cold objects, those in memory that nothing pins and that have no copy elsewhere. An object joins the
// list when its last pin falls, so the head is the one that was used longest ago. Those with a copy elsewhere are on a list of their own: their
// memory is used again without a write, before anything is spilled (placing.go). The spiller takes from the head: see spill. Those in a file outside the
// segment are on a third list: a file is for what is pinned, and its bytes count against the disk budget.

// relist brings an object's place in the lists and the books up to date after any change of its pins
// or copies, and lets it go when nothing keeps it.
func (os *objects) relist(o *object) {
	if len(o.copies) > 0 && (o.gone || len(o.parked) > 0) {
		os.releaseCopies(o)
	}
	if o.dead {
		return
	}
	pinned := o.pinned()
	if counted := pinned && o.resident && o.file == 0; counted != o.counted {
		o.counted = counted
		if counted {
			os.space.pinnedBytes += o.block.Size
		} else {
			os.space.pinnedBytes -= o.block.Size
		}
	}
	var want *lru
	if o.resident && !pinned && !o.spilling && (!o.gone || len(o.copies) > 0) {
		switch copied := o.spilled || o.of != nil || len(o.elsewhere) > 0; {
		case o.file == 0 && copied:
			want = &os.second
		case o.file == 0:
			want = &os.cold
		case !copied:
			want = &os.outside
		}
	}
	if o.list != want {
		if o.list != nil {
			o.list.remove(o)
		}
		if want != nil {
			want.push(o)
		}
	}
	if len(o.parked) > 0 && !o.busy() {
		parked := o.parked
		o.parked = nil
		for _, id := range parked {
			if r, ok := os.objs[id]; ok && r.o == o {
				os.dropFreedValue(id, r)
			}
		}
	}
	if pinned || o.spilling || o.restore != nil || o.draining || o.filling != nil {
		return
	}
	switch {
	case o.gone && len(o.copies) == 0, o.of != nil && !o.resident:
		os.destroy(o)
	case o.resident && o.file != 0 && (o.spilled || o.of != nil || len(o.elsewhere) > 0):
		os.evict(o) // what is on disk, or on another node, or what it is a copy of, is enough
	}
}

func (l *lru) push(o *object) {
	o.list, o.prev, o.next = l, l.tail, nil
	if l.tail != nil {
		l.tail.next = o
	} else {
		l.head = o
	}
	l.tail = o
	l.bytes += o.footprint()
	l.n++
}

func (l *lru) remove(o *object) {
	if o.prev != nil {
		o.prev.next = o.next
	} else {
		l.head = o.next
	}
	if o.next != nil {
		o.next.prev = o.prev
	} else {
		l.tail = o.prev
	}
	o.list, o.prev, o.next = nil, nil, nil
	l.bytes -= o.footprint()
	l.n--
}
