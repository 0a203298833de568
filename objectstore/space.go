package objectstore

import (
	"mobula/internal/errs"
	"mobula/objectstore/alloc"
)

func (sp *space) freeBlock(b alloc.Block) {
	if err := sp.alloc.Free(b); err != nil {
		panic(err) // the books are wrong: the core is rebuilt from the index
	}
}

// share is so much of the store.
func (sp *space) share(of float64) uint64 { return uint64(float64(sp.alloc.Limit()) * of) }

// figures is the end of an error that says why there is no room.
func (sp *space) figures(need uint64) string {
	return errs.New(errs.CodeUnknown, "%d bytes asked, limit %d, held %d, pinned %d, being written %d, free %d, the longest piece of it %d, in fallback files %d of %d",
		need, sp.alloc.Limit(), sp.alloc.Held(), sp.pinnedBytes, sp.grantBytes, sp.freeBytes(), sp.alloc.Largest(), sp.fallbackBytes, sp.cfg.FallbackBytes).Msg
}
