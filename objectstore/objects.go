package objectstore

import (
	"iter"
	"slices"

	"mobula/internal/ids"
	"mobula/objectstore/alloc"
	"mobula/objectstore/spill"
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
	if !o.spilled && o.twin() == nil {
		os.emit(ToOwner{o.id.Job(), Evicted{o.id}})
	}
}

// twinGone tells the owner of an object that is on other nodes when the last copy for another job has left memory here: it was a copy like any other.
func (os *objects) twinGone(of *object) {
	if !of.dead && !of.gone && !of.resident && !of.spilled && len(of.elsewhere) > 0 && of.twin() == nil {
		os.emit(ToOwner{of.id.Job(), Evicted{of.id}})
	}
}

// letGo has an object go as soon as nothing keeps it. A new core does not learn where else it is, but for those who wait for it already: then it learns that
// it was freed as well.
func (os *objects) letGo(o *object) {
	o.gone = true
	if len(o.elsewhere) == 0 {
		return
	}
	if d := o.restore; d != nil && len(d.gets) > 0 && os.objs[o.id].o == o {
		o.noted = true
		os.keepNote(freedKey(o.id), Free{[]ids.ObjectID{o.id}})
		return
	}
	os.forgetPlaces(o)
}

// forgetPlaces has no new core learn where else an object is.
func (os *objects) forgetPlaces(o *object) {
	os.emit(Forget{locatedKey(o.id)})
	os.forgetFreed(o)
}

func (os *objects) forgetFreed(o *object) {
	if o.noted {
		o.noted = false
		os.emit(Forget{freedKey(o.id)})
	}
}

// keep has an object stay that was let go and is still here: its owner has a use for it again.
func (os *objects) keep(o *object) {
	o.gone = false
	os.forgetFreed(o)
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
	os.unviewed(o)
	os.progress.noteProgress()
	os.clearSlot(o.slot)
	if o.spilled {
		os.files.drop(o)
		os.emit(SpillRemove{locs(o.loc)})
		os.progress.disk.retryAt = 0 // a disk that was full has room again
	}
	if len(o.elsewhere) > 0 && (!o.gone || o.noted) {
		os.forgetPlaces(o)
	}
	if o.resident {
		os.giveBack(o.block, o.file, o.size, o.path)
	}
	was := o.resident
	o.resident, o.elsewhere, o.dead = false, nil, true
	os.copyGone(o)
	if was && o.of != nil {
		os.twinGone(o.of)
	}
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
	slices.SortFunc(out, compareObjects)
	return out
}

// unused are the spilled copies that no object has. An earlier core may have given objects theirs, of a write that is told again to this one.
func (os *objects) unused(written []spill.Location) []spill.Location {
	if len(written) == 0 {
		return nil
	}
	used := make(map[spill.Location]bool)
	for _, o := range os.all() {
		if o.spilled {
			used[o.loc] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(written), func(l spill.Location) bool { return used[l] })
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
