package objectstore

import "mobula/objectstore/alloc"

// IndexTakes says how much memory the index has, with what it will need next. It is in the store's limit: so much of the segment is not used. An
// index does not shrink.
type IndexTakes struct{ Bytes uint64 }

func (IndexTakes) storeEvent() {}

// indexMost is which part of the limit the index may take from objects. Beyond it, at a record for every 768 bytes of the limit, a store
// would have no room to work in.
const indexMost = 2

// forObjects is the limit without what the index takes of it.
func (sp *space) forObjects() uint64 {
	limit := sp.alloc.Limit()
	return limit - min((sp.index+alloc.Page-1)&^(alloc.Page-1), limit/indexMost&^(alloc.Page-1))
}

// freeBytes is what objects could be put into now.
func (sp *space) freeBytes() uint64 { return sp.forObjects() - min(sp.forObjects(), sp.alloc.Held()) }

// withhold takes from what is free what the index has grown by, before anybody else gets it. A reservation under way might put memory behind
// what is taken, so it ends first.
func (sp *space) withhold() {
	if sp.reserving == 0 {
		if rs := sp.alloc.Withhold(sp.alloc.Limit() - sp.forObjects()); len(rs) > 0 {
			sp.emit(Punch{rs})
		}
	}
}
