package owner

import (
	"slices"

	"mobula/internal/ids"
	"mobula/raylet/owner/object"
)

// A put cannot be made again, nor the result of an actor's call or of a task without retries, or with none left. What was made of it can, as long as its value is there: so while objects of
// the job are in the stores of several nodes, each of which may die with what it has, such a value is kept that nobody refers to any more and lineage needs. One store
// keeps it, and spills it like any other. Of all such values there are MaxKeptBytes at most: the oldest are freed for others, and all of them when a store has no room
// left on disk either. On a node that is alone none is kept: what was made of such a value then, and is used on other nodes later, is kept in its place.

// keptValues is those values.
type keptValues struct {
	size   map[ids.ObjectID]int64
	order  []ids.ObjectID // oldest first; those that are not in size any more are to be passed over
	bytes  int64
	losses uint32 // how often a value was freed without a look at what makes it again, or the last retry of a task taken
}

// keep keeps the value of an object that nothing but lineage needs, if it is to be kept.
func (os *objects) keep(o *objRec) bool {
	if o.lineage == 0 || os.copies.atHome() || os.remakable(o) {
		return false
	}
	if _, is := os.keptValues.size[o.id]; is {
		return true
	}
	if int64(o.res.Size) > os.cfg.MaxKeptBytes {
		return false
	}
	os.keptValues.add(o.id, int64(o.res.Size))
	os.copies.keepSafe(o)
	for os.keptValues.bytes > os.cfg.MaxKeptBytes {
		os.freeOldest()
	}
	return true
}

// letGo frees all of it.
func (os *objects) letGo() {
	for len(os.keptValues.size) > 0 {
		os.freeOldest()
	}
}

func (os *objects) freeOldest() {
	if old := os.object(os.keptValues.oldest()); old != nil && old.state == object.Stored && !old.held() {
		os.freeForLineage(old)
	}
}

// madeAgain tells whether a task may make the object again: one that runs, or that is kept for it, and has a retry left for that.
func (o *objRec) madeAgain() bool {
	t := o.rec
	return t != nil && !t.isCall() && !t.isCreation() && (t.flags&taskLineage != 0 || !t.state.Terminal()) && retryLeft(t)
}

// maxRemakeWalk bounds the objects that are looked at to tell whether one can be made again.
const maxRemakeWalk = 1 << 10

// remakable tells whether a task may make the object again from what is there, or may be made again in turn. What was found to be so is not looked at again
// before another value is freed, so a long chain costs no more than its newest link.
func (os *objects) remakable(o *objRec) bool {
	now := os.keptValues.losses + 1
	o.remakes = now
	seen := []*objRec{o}
	for i := 0; i < len(seen) && i < maxRemakeWalk; i++ {
		if !seen[i].madeAgain() {
			for _, a := range seen {
				a.remakes = 0
			}
			return false
		}
		spec := seen[i].rec.spec
		if spec == nil {
			continue // it was paged out, and refers to nothing
		}
		os.eachRef(spec, func(_ *objects, a *objRec) {
			if a.state == object.Freed && a.flags&objBorrowed == 0 && a.remakes != now {
				a.remakes = now
				seen = append(seen, a)
			}
		})
	}
	return true
}

// freeForLineage frees the value of an object that only lineage needs. That a put was freed nothing else tells.
func (os *objects) freeForLineage(o *objRec) {
	if o.remakes != os.keptValues.losses+1 {
		os.keptValues.losses++
	}
	os.copies.free(o)
	os.dropValue(o)
	if o.rec == nil {
		os.journal.logFreed(o)
	}
}

func (k *keptValues) add(id ids.ObjectID, size int64) {
	if k.size == nil {
		k.size = make(map[ids.ObjectID]int64)
	}
	if len(k.order) > 2*len(k.size)+64 {
		k.order = slices.DeleteFunc(k.order, func(id ids.ObjectID) bool { _, is := k.size[id]; return !is })
	}
	k.size[id] = size
	k.order = append(k.order, id)
	k.bytes += size
}

// remove takes an object out: it is used again, or its value is gone.
func (k *keptValues) remove(id ids.ObjectID) {
	if len(k.size) > 0 {
		k.bytes -= k.size[id]
		delete(k.size, id)
	}
}

// oldest takes the oldest out. There is one.
func (k *keptValues) oldest() ids.ObjectID {
	for {
		id := k.order[0]
		k.order = k.order[1:]
		if _, is := k.size[id]; is {
			k.remove(id)
			return id
		}
	}
}
