package objectstore

import (
	"mobula/internal/errs"
	"mobula/objectstore/alloc"
)

// space is the segment's bytes: which are taken, which have memory behind them, and how many there may be.
type space struct {
	*step
	alloc          *alloc.Allocator
	memoryTarget   uint64 // bytes that may have memory behind them; 0: Limit
	index          uint64 // bytes of the index, which count as the store's
	pinnedBytes    uint64
	grantBytes     uint64 // blocks and files granted, unsealed
	spillingBytes  uint64
	fallbackBytes  uint64 // of fallback files
	reserving      int
	reserveRetryAt int64 // no cold memory before: a reservation failed
	reserveErr     error
	lastOwner      alloc.Owner // who asked for room last, if anybody did
	hasLastOwner   bool
	peak           recentPeak
	lastDemandAt   int64 // of a create or restore
}

func (sp *space) freeBlock(b alloc.Block) {
	if err := sp.alloc.Free(b); err != nil {
		panic(err) // the books are wrong: the core is rebuilt from the index
	}
}

// share is so much of the store.
func (sp *space) share(of float64) uint64 { return uint64(float64(sp.alloc.Limit()) * of) }

// figures is the end of an error that says why there is no room.
func (sp *space) figures(need uint64) string {
	return errs.New(errs.CodeUnknown, "%d bytes asked, limit %d, held %d, pinned %d, being written %d, free %d, in fallback files %d of %d",
		need, sp.alloc.Limit(), sp.alloc.Held(), sp.pinnedBytes, sp.grantBytes, sp.freeBytes(), sp.fallbackBytes, sp.cfg.FallbackBytes).Msg
}
