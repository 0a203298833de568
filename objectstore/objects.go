package objectstore

import (
	"iter"
	"slices"

	"mobula/internal/ids"
	"mobula/objectstore/alloc"
)

// evict drops the bytes in memory of an object that has a spilled copy or one on another node, or is a copy.
func (os *objects) evict(o *object) {
	if o.of != nil {
		os.destroy(o)
		return
	}
	if o.list != nil {
		o.list.remove(o)
	}
	o.resident = false
	os.record(o)
	os.giveBack(o.block, o.file, o.size, o.path)
	o.file, o.path = 0, ""
}

// destroy forgets an object and all its copies.
func (os *objects) destroy(o *object) {
	if o.list != nil {
		o.list.remove(o)
	}
	for id := range os.idsOf(o) {
		delete(os.objs, id)
	}
	for _, id := range o.orphaned {
		if l := slices.DeleteFunc(os.orphans[id], func(x ref) bool { return x.o == o }); len(l) == 0 {
			delete(os.orphans, id)
		} else {
			os.orphans[id] = l
		}
	}
	delete(os.pinned, o)
	os.progress.noteProgress()
	os.clearSlot(o.slot)
	if o.spilled {
		os.emit(SpillRemove{locs(o.loc)})
		os.progress.disk.retryAt = 0 // a disk that was full has room again
	}
	if len(o.elsewhere) > 0 {
		os.emit(Forget{locatedKey(o.id)})
	}
	if o.resident {
		os.giveBack(o.block, o.file, o.size, o.path)
	}
	o.resident, o.spilled, o.elsewhere, o.dead = false, false, nil, true
	os.copyGone(o)
}

// giveBack frees what a grant or an object held.
func (os *objects) giveBack(b alloc.Block, file uint32, size uint64, path string) {
	if file != 0 {
		os.space.fallbackBytes -= size
		os.progress.resetCollect()
		os.clients.dropFile(file, path)
		return
	}
	os.space.freeBlock(b)
}

// reclaimable is what is free or could be made free without anyone letting go of anything.
func (os *objects) reclaimable() uint64 {
	return os.space.objectLimit() - min(os.space.objectLimit(), os.space.alloc.Used()) + os.cold.bytes + os.second.bytes + os.space.spillingBytes
}

func (os *objects) newSlot() uint32 {
	if n := len(os.freeSlots); n > 0 {
		s := os.freeSlots[n-1]
		os.freeSlots = os.freeSlots[:n-1]
		return s
	}
	os.nextSlot++
	return os.nextSlot - 1
}

func (os *objects) clearSlot(s uint32) {
	os.emit(ClearRecord{s})
	os.freeSlots = append(os.freeSlots, s)
}

// all lists every object and block once, orphans too, in a fixed order.
func (os *objects) all() []*object {
	seen := make(map[*object]struct{}, len(os.objs))
	var out []*object
	add := func(o *object) {
		if _, ok := seen[o]; !ok {
			seen[o] = struct{}{}
			out = append(out, o)
		}
	}
	for _, r := range os.objs {
		add(r.o)
	}
	for _, l := range os.orphans {
		for _, r := range l {
			add(r.o)
		}
	}
	for o := range os.allCopies {
		add(o)
	}
	slices.SortFunc(out, func(a, b *object) int { return a.id.Compare(b.id) })
	return out
}

// orphan keeps what an id was before where a client's Unpin finds it.
func (os *objects) orphan(id ids.ObjectID, r ref) {
	os.orphans[id] = append(os.orphans[id], r)
	r.o.orphaned = append(r.o.orphaned, id)
}

// orphansOf lists what a client may have pinned of what an id was before.
func (os *objects) orphansOf(client ids.ClientID, id ids.ObjectID) (out []ref) {
	for _, r := range os.orphans[id] {
		if r, ok := os.readAt(client, r); ok {
			out = append(out, r)
		}
	}
	return out
}

// idsOf yields the ids by which an object, or the values of a block, are known. Of a block it looks through all objects:
// only for the rare end of one as a whole.
func (os *objects) idsOf(o *object) iter.Seq2[ids.ObjectID, ref] {
	return func(yield func(ids.ObjectID, ref) bool) {
		if o.values == nil {
			if r := os.objs[o.id]; r.o == o {
				yield(o.id, r)
			}
			return
		}
		if o.live == 0 {
			return
		}
		for id, r := range os.objs {
			if r.o == o && !yield(id, r) {
				return
			}
		}
	}
}
