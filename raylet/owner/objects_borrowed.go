package owner

import (
	"mobula/internal/ids"
	"mobula/raylet/owner/object"
	"mobula/wire"
)

// An object of another job that something here refers to has a record among the placeholders, for as long as that is so. With the record the
// owner of this job has a handle at the object's own, and what it was told of the value, when somebody asked for it first. Nothing of the
// value is this owner's to pack, free or make again.

// borrow makes the record of another job's object, and borrows it.
func (os *objects) borrow(id ids.ObjectID) *objRec {
	o := &objRec{id: id, state: object.Pending, flags: objPlaceholder | objBorrowed}
	os.placeholders[id] = o
	os.toOwner(id.Job(), Words{&wire.AddRef{ID: id}})
	return o
}

// known finds an object, and makes the record of another job's that has none yet; nil: one of this job is unknown.
func (os *objects) known(id ids.ObjectID) *objRec {
	if o := os.object(id); o != nil || !os.ofOtherJob(id) {
		return o
	}
	return os.borrow(id)
}

// borrowStays tells whether another job's object is needed though nothing here refers to it.
func (os *objects) borrowStays(o *objRec) bool {
	return o.lineage > 0 || o.waits != nil || os.borrows.awaits(o.id)
}

// recountBorrowed looks whether another job's object is still needed.
func (os *objects) recountBorrowed(id ids.ObjectID) {
	if o := os.placeholders[id]; o != nil {
		os.queueRecount(o)
	}
}

func (os *objects) ofOtherJob(id ids.ObjectID) bool { return id.Job() != os.cfg.Job }

// askFor asks the owner of another job's object for it, since somebody waits.
func (os *objects) askFor(o *objRec) {
	if o.flags&(objBorrowed|objAsked) == objBorrowed && o.state == object.Pending {
		o.flags |= objAsked
		os.toOwner(o.id.Job(), Words{&wire.Get{ID: o.id}})
	}
}

// returnBorrowed gives back an object that nothing here refers to any more. While somebody waits for it, it stays.
func (os *objects) returnBorrowed(o *objRec) {
	if os.borrowStays(o) {
		return
	}
	delete(os.placeholders, o.id)
	delete(os.borrows.byID, o.id)
	res := o.res
	o.state, o.res = object.Freed, nil
	os.releaseContained(containedIn(res))
	os.toOwner(o.id.Job(), Words{&wire.Release{IDs: []ids.ObjectID{o.id}}})
}
