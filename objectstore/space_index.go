package objectstore

import "mobula/objectstore/alloc"

// IndexSize says how much memory the index has, with what it will need next. It is in the store's limit: so much of the segment is not used. An
// index does not shrink.
type IndexSize struct{ Bytes uint64 }

func (IndexSize) storeEvent() {}

// maxIndexShare is which part of the limit the index may take from objects. Beyond it, at a record for every 768 bytes of the limit, a store
// would have no room to work in.
const maxIndexShare = 2

// objectLimit is the limit without what the index takes of it.
func (sp *space) objectLimit() uint64 {
	limit := sp.alloc.Limit()
	return limit - min((sp.index+alloc.Page-1)&^(alloc.Page-1), limit/maxIndexShare&^(alloc.Page-1))
}

// freeBytes is what objects could be put into now.
func (sp *space) freeBytes() uint64 { return sp.objectLimit() - min(sp.objectLimit(), sp.alloc.Held()) }

// reserveForIndex takes from what is free what the index has grown by, before anybody else gets it. A reservation under way might put memory behind
// what is taken, so it ends first.
func (sp *space) reserveForIndex() {
	if sp.reserving == 0 {
		if rs := sp.alloc.Withhold(sp.alloc.Limit() - sp.objectLimit()); len(rs) > 0 {
			sp.emit(Punch{rs})
		}
	}
}
