package owner

import (
	"maps"
	"slices"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/objectstore"
	"mobula/raylet/owner/object"
)

// The log says what the store of the job's own node had. The store may have less: it is not kept where the node goes with the program that started it, and after the
// end of the machine, or with files gone, some of it is lost. If that showed as one object after the other is asked for, a task with many results would run again
// for each of them, with a retry each. So a rebuilt core asks the store, and takes its word: all that it lacks is lost at once.

// doubt is of an object that the job's own node is taken to have, until its store has said so.
type doubt struct {
	attempt uint32
	left    bool // by a node that is dead: that the store was told of it does not help
}

// doubtAll notes that the store is yet to say that it has an object. What was packed is in the log too: that costs nobody a retry.
func (cp *copies) doubtAll(objects func(func(*objRec))) {
	objects(func(o *objRec) {
		if o.state == object.Stored && o.flags&(objPacked|objBorrowed) == 0 && cp.of(o)[0] == cp.home() {
			cp.doubts[o.id] = doubt{attempt: o.attempt}
		}
	})
}

// settle takes the word of the store of the job's own node. Of an earlier question it is old: objects were sealed since.
func (cp *copies) settle(m *objectstore.Inventory) {
	if m.Ask == 0 || m.Ask != cp.epoch {
		return
	}
	for i := range m.Objects {
		if s, d := &m.Objects[i], cp.doubts[m.Objects[i].ID]; s.Attempt == d.attempt && (!s.Elsewhere || !d.left) {
			delete(cp.doubts, s.ID)
		}
	}
	for _, l := range slices.Concat(m.Left, m.Unsealed) { // they were sealed just now
		if cp.doubts[l.ID].attempt == l.Attempt {
			delete(cp.doubts, l.ID)
		}
	}
	lacks := cp.doubts
	cp.doubts = make(map[ids.ObjectID]doubt)
	for _, id := range slices.SortedFunc(maps.Keys(lacks), ids.ObjectID.Compare) {
		o := cp.up.object(id)
		if o == nil || o.state != object.Stored || o.attempt != lacks[id].attempt || cp.of(o)[0] != cp.home() {
			continue
		}
		if set := cp.byID[id]; set == nil || !cp.leave(set, cp.home()) {
			cp.up.objectLost(o, lacks[id].err(id))
		}
	}
}

func (d doubt) err(id ids.ObjectID) *errs.Error {
	if d.left {
		return errs.New(errs.CodeObjectLost, "object %v was on a node where the job is not any more", id)
	}
	return errs.New(errs.CodeObjectLost, "object %v was in the store of the job's node, which does not have it since the node was started again", id)
}
