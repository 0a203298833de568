package owner

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/objectstore"
)

// A stored object is in the store of the job's own node, unless a worker elsewhere made it; other nodes import copies of it. The first node that has it
// keeps the primary copy. It is not told of the others, so its store spills the object before it uses the memory again. Each other store is told where the
// object is, and drops its copy when it needs the memory.

// copySet is where one object's copies are.
type copySet struct {
	o    *objRec
	on   []ids.Home // have a copy, the primary first
	told []ids.Home // were told of the object, and may have asked for it; those in on are not in here

	promoting bool // the job's own node, which has a copy, was asked to keep it, and is yet to say that it has it still

	lacked int64 // when a store could last not get it from the node that keeps it, which was asked then; 0: never from this one, or one got it since
	asked  int64 // when the questions began of which that was the last
}

// atHome tells whether every object is in the store of the job's own node alone.
func (cp *copies) atHome() bool { return len(cp.byID) == 0 }

// of gives the nodes that have a stored object.
func (cp *copies) of(o *objRec) []ids.Home {
	if set := cp.byID[o.id]; set != nil {
		return set.on
	}
	return cp.alone
}

// made notes the node in whose store an object was sealed.
func (cp *copies) made(o *objRec, node ids.Home) {
	if node != cp.home() {
		cp.begin(o, node)
	}
}

// begin makes the set of an object that one node has.
func (cp *copies) begin(o *objRec, node ids.Home) *copySet {
	if was := cp.byID[o.id]; was != nil {
		cp.count(was, -1)
	}
	set := &copySet{o: o, on: []ids.Home{node}}
	cp.byID[o.id] = set
	cp.count(set, 1)
	return set
}

// locate tells the store of a node where an object is, unless it has it. It goes before what asks the store for the object.
func (cp *copies) locate(o *objRec, node ids.Home) {
	if slices.Contains(cp.of(o), node) {
		return
	}
	set := cp.knows(o, node)
	cp.toStoreAt(node, set.located(set.on))
}

// knows counts a node among those whose stores know of an object, and may have a copy.
func (cp *copies) knows(o *objRec, node ids.Home) *copySet {
	set := cp.byID[o.id]
	if set == nil {
		set = cp.begin(o, cp.home())
	}
	if !slices.Contains(set.on, node) && !slices.Contains(set.told, node) {
		cp.change(set, func() { set.told = append(set.told, node) })
	}
	return set
}

func (set *copySet) located(on []ids.Home) objectstore.Located {
	o := set.o
	return objectstore.Located{ID: o.id, Attempt: o.attempt, Size: o.res.Size, Meta: o.res.Value.Meta, On: slices.Clone(on)}
}

// imported notes that a node has a copy now. One that was freed meanwhile is dropped there already.
func (cp *copies) imported(node ids.Home, m objectstore.Imported) {
	if set := cp.byID[m.ID]; set != nil && set.o.attempt == m.Attempt && set.promoting && node == cp.home() {
		cp.promoted(set)
	}
	if set := cp.byID[m.ID]; set != nil && set.o.attempt == m.Attempt && !slices.Contains(set.on, node) {
		cp.change(set, func() { set.on, set.told = append(set.on, node), without(set.told, node) })
		set.lacked = 0
	}
}

// found notes that the store of a node knows a stored object, and may have a copy. A copy of another attempt is dropped.
func (cp *copies) found(o *objRec, node ids.Home, s *objectstore.SealedInfo) {
	switch {
	case s.Attempt != o.attempt && o.flags&objPacked == 0:
		cp.toStoreAt(node, objectstore.DropAttempt{ID: o.id, Attempt: s.Attempt})
		return
	case cp.byID[o.id] == nil && node == cp.home():
		return
	}
	cp.knows(o, node)
	if !s.Elsewhere {
		cp.imported(node, objectstore.Imported{ID: s.ID, Attempt: o.attempt})
	}
}

// evicted notes that a node has dropped its copy for the memory that it took.
func (cp *copies) evicted(node ids.Home, m objectstore.Evicted) {
	if set := cp.byID[m.ID]; set != nil && set.on[0] != node && slices.Contains(set.on, node) {
		set.on, set.told = without(set.on, node), append(set.told, node)
		set.promoting = set.promoting && node != cp.home()
	}
}

// free has every store that knows of an object drop it, when the step ends.
func (cp *copies) free(o *objRec) {
	for _, node := range cp.forget(o) {
		cp.freeAt(node, o)
	}
}

// keepSafe has stores drop an object, when the step ends, that are not needed for it to outlive a node. The job's own node ends with the job alone: where it has
// a copy, that is the one to keep. Copies on other nodes stay until their memory is needed.
func (cp *copies) keepSafe(o *objRec) {
	set := cp.byID[o.id]
	if set == nil {
		return
	}
	others := set.told
	if set.on[0] == cp.home() {
		others = slices.Concat(set.on[1:], set.told)
	} else if slices.Contains(set.on, cp.home()) {
		cp.promoteHome(set)
	}
	cp.change(set, func() {
		set.told = nil
		set.on = slices.DeleteFunc(set.on, func(node ids.Home) bool { return slices.Contains(others, node) })
	})
	for _, node := range others {
		cp.freeAt(node, o)
	}
}

// promoteHome has the job's own node keep an object that it has a copy of. It may be dropping that just now: who keeps the object is told of it, and may drop its own, only
// when the node has said that it has it still.
func (cp *copies) promoteHome(set *copySet) {
	set.promoting = true
	cp.toStoreAt(cp.home(), set.located(nil))
}

// promoted has the job's own node be the one that keeps an object.
func (cp *copies) promoted(set *copySet) {
	set.promoting = false
	if set.on[0] == cp.home() || !slices.Contains(set.on, cp.home()) {
		return
	}
	was := set.on[0]
	set.on = slices.Insert(without(set.on, cp.home()), 0, cp.home())
	set.lacked = 0
	cp.toStoreAt(was, set.located([]ids.Home{cp.home()}))
	cp.journal.logObject(set.o, set.o.res, set.o.attempt, cp.home())
}

func (cp *copies) freeAt(node ids.Home, o *objRec) {
	if node == cp.home() {
		cp.frees = append(cp.frees, o.id)
	} else {
		cp.freesAt[node] = append(cp.freesAt[node], o.id)
	}
}

// freeNow is free at once, ahead of what lets a worker make the object again.
func (cp *copies) freeNow(o *objRec) {
	for _, node := range cp.forget(o) {
		cp.toStoreAt(node, objectstore.Free{IDs: []ids.ObjectID{o.id}})
	}
}

// freeElsewhere drops the copies of an object that the job's own node is not alone to know.
func (cp *copies) freeElsewhere(o *objRec) {
	if cp.byID[o.id] != nil {
		cp.freeNow(o)
	}
}

// forget gives the nodes that know of an object, and knows of them no more.
func (cp *copies) forget(o *objRec) []ids.Home {
	set := cp.byID[o.id]
	if set == nil {
		return cp.alone
	}
	delete(cp.byID, o.id)
	cp.count(set, -1)
	return append(set.on, set.told...)
}

// flushFrees tells the stores what to free, each in one message.
func (cp *copies) flushFrees() {
	if len(cp.frees) > 0 {
		cp.toStore(objectstore.Free{IDs: slices.Clone(cp.frees)})
		cp.frees = cp.frees[:0]
	}
	if len(cp.freesAt) > 0 {
		for _, node := range slices.Sorted(maps.Keys(cp.freesAt)) {
			cp.toStoreAt(node, objectstore.Free{IDs: cp.freesAt[node]})
		}
		clear(cp.freesAt)
	}
	cp.flushKnown()
}

// lost says whether an object is lost that the store of a node cannot give. It is not while another node has it: the node that keeps it is asked whether
// that is so, since its answer ends the matter.
func (cp *copies) lost(o *objRec, node ids.Home) bool {
	set := cp.byID[o.id]
	switch {
	case set == nil && node == cp.home():
		return true
	case set == nil:
		cp.toStore(objectstore.Located{ID: o.id, Attempt: o.attempt, Size: o.res.Size, Meta: o.res.Value.Meta})
		return false
	case set.on[0] != node:
		cp.change(set, func() { set.on, set.told = without(set.on, node), append(without(set.told, node), node) })
		set.promoting = set.promoting && node != cp.home()
		cp.toStoreAt(set.on[0], set.located(nil))
		set.lacks(cp.now)
		return false
	}
	cp.toStoreAt(node, objectstore.DropAttempt{ID: o.id, Attempt: o.attempt}) // it may have been made there again since
	return !cp.leave(set, node)
}

// maxAsk bounds the wait between two questions for an object whose keeper does not answer.
const maxAsk = time.Second

// lacks notes that a store cannot get an object from the node that keeps it, which is asked now. Questions of long ago were about something else.
func (set *copySet) lacks(now int64) {
	if now-set.lacked > 2*int64(maxAsk) {
		set.asked = now
	}
	set.lacked = now
}

// patience is how long whoever needs an object waits before a store is asked for it again: as long as its keeper has not answered by now. The keeper may be
// cut off from the owner and not from the store: without a wait the store would be refused, and asked again, without end.
func (cp *copies) patience(id ids.ObjectID) time.Duration {
	set := cp.byID[id]
	if set == nil || set.lacked == 0 {
		return 0
	}
	return min(time.Duration(cp.now-set.asked), maxAsk)
}

// leave takes a node out of those that have an object, and is false if none is left. The next one keeps it from then on.
func (cp *copies) leave(set *copySet, node ids.Home) bool {
	cp.count(set, -1)
	defer func() { cp.count(set, 1) }()
	set.told = without(set.told, node)
	was := set.on[0]
	if set.on = without(set.on, node); len(set.on) == 0 {
		set.on = []ids.Home{node} // whoever makes it again, or gives it up, frees it everywhere
		return false
	}
	if set.on[0] != was {
		set.lacked = 0
		cp.toStoreAt(set.on[0], set.located(nil))
		cp.journal.logObject(set.o, set.o.res, set.o.attempt, set.on[0])
	}
	return true
}

// nodeGone takes the copies of a node away that is dead. What was nowhere else is made again or lost.
func (cp *copies) nodeGone(node ids.Home, err *errs.Error) {
	for _, set := range cp.at(node) {
		if cp.byID[set.o.id] == set && !cp.leave(set, node) { // else it went with one before it
			cp.up.objectLost(set.o, err)
		}
	}
	delete(cp.freesAt, node)
	delete(cp.opened, node)
	delete(cp.expected, node)
}

// leaveTo takes the copies of a node away that is dead, for a core that knows from its log alone who keeps an object. The job's own node may have a copy of
// what was nowhere else: it keeps the object from then on, unless its store says that it does not have it.
func (cp *copies) leaveTo(dead ids.Home) {
	for _, set := range cp.at(dead) {
		cp.change(set, func() { set.on, set.told = without(set.on, dead), without(set.told, dead) })
		if len(set.on) == 0 {
			cp.forget(set.o)
			cp.journal.logObject(set.o, set.o.res, set.o.attempt, cp.home())
			cp.doubts[set.o.id] = doubt{attempt: set.o.attempt, left: true}
		}
	}
}

// at gives the objects that a node has or knows of, in order.
func (cp *copies) at(node ids.Home) []*copySet {
	var sets []*copySet
	for _, set := range cp.byID {
		if slices.Contains(set.on, node) || slices.Contains(set.told, node) {
			sets = append(sets, set)
		}
	}
	slices.SortFunc(sets, func(a, b *copySet) int { return a.o.id.Compare(b.o.id) })
	return sets
}

// without takes a node out of a list.
func without[T comparable](from []T, x T) []T {
	if i := slices.Index(from, x); i >= 0 {
		return slices.Delete(from, i, i+1)
	}
	return from
}

// nodes gives the nodes other than the job's own that know of any object, in order.
func (cp *copies) nodes() []ids.Home {
	seen := make(map[ids.Home]struct{})
	for _, set := range cp.byID {
		for _, node := range slices.Concat(set.on, set.told) {
			seen[node] = struct{}{}
		}
	}
	delete(seen, cp.home())
	return slices.SortedFunc(maps.Keys(seen), cmp.Compare[ids.Home])
}
