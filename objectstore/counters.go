package objectstore

// Counters count what has happened since the store was opened, restarts of the core included.
type Counters struct {
	Since                         int64 // Unix nanoseconds
	Creates, Sealed, TooLarge     uint64
	Blocks, PackedValues          uint64
	Spills, SpillErrors           uint64 // writes
	SpilledObjects, SpilledBytes  uint64
	Compactions                   uint64 // writes of spill files anew
	CompactedBytes                uint64 // of objects, by these
	ReclaimedBytes                uint64 // on disk, by these
	Restores, RestoredBytes, Lost uint64
	ReadAhead                     uint64 // of Restores, begun before anybody asked
	Evictions                     uint64 // of copies: no write
	Fallbacks, Collects           uint64
	GaveUp                        uint64 // demands that somebody was refused for
	CopiesMade, CopiedBytes       uint64 // for readers of other jobs
	Imports, ImportedBytes        uint64 // from other nodes
}
