package objectstore

import (
	"errors"
	"fmt"
	"time"
)

// Config is what the core decides by. Start from DefaultConfig.
type Config struct {
	// Limit is the segment's size: bytes allocated never exceed it.
	Limit uint64
	// SpillThreshold is the share of Limit above which cold objects are spilled. Default 0.8,
	// as Ray's object_spilling_threshold.
	SpillThreshold float64
	// MinSpillBytes is how much is fused into one write unless a create waits; at most an
	// eighth of Limit. Default 100 MiB, as Ray's min_spilling_size.
	MinSpillBytes uint64
	// SpillGarbage is the share of Limit that garbage may take in spill files of which less than a quarter lives; beyond it they are written anew, and
	// sooner when a disk is full (spilling_compact.go). Default 0.25.
	SpillGarbage float64
	// MaxFused is how many objects one write takes. Default 2000, as Ray's max_fused_object_count.
	MaxFused int
	// MaxSpills and MaxRestores are how many writes and reads may be under way. They are
	// apart, so that neither can starve the other, and MaxRestores counts reads for other nodes
	// apart from those for this one. Default 4 each, as Ray's max_io_workers.
	MaxSpills, MaxRestores int
	// ArgsFraction is the share of Limit that running tasks' arguments may take. Default 0.7, as
	// Ray's max_task_args_memory_fraction.
	ArgsFraction float64
	// FallbackBytes is the disk budget of fallback files, which are mapped in place of segment memory when nothing can be unpinned, or what is free is in
	// pieces: by so much more than Limit programs may keep by views and unfinished puts, and more than it is in files only while tasks hold it. Default: Limit.
	FallbackBytes uint64
	// Stall is how long the head of the queue waits without any progress before it is served from a fallback file, where
	// it is not plain that nobody can help. Default 1 s.
	Stall time.Duration
	// Patience is how long is waited, while the spill directories are full, for others to let go of anything, before
	// what has no room ends with an error; ten times as long while tasks that go on hold arguments. Default 30 s.
	Patience time.Duration
	// ReserveStep is the most that is reserved at a time beyond what is needed; a small store reserves
	// a sixteenth of what it has, at least an eighth of the step. Default 64 MiB.
	ReserveStep uint64
	// ColdFrom is the size from which an extent that would need all its memory reserved is granted
	// without, after a look at available memory: its writer brings the pages, in parallel, which takes
	// half the time (segment.Mapping does). So it is with what is read from another node: its memory comes with its bytes (segment.Room).
	// 0: never. Default 64 MiB.
	ColdFrom uint64
	// WarmBytes of memory stay backed beyond what was in use within WarmIdle, at least a step of reservation while the store is
	// used (space_purge.go). Default 16 MiB, 5 s. With 1 s a node that receives one large object after another gave the memory of each back
	// before the next came: 0.8 GiB/s in place of 1.5. With 10 s, short workloads in a row peaked up to 200 MiB higher and were 1 % faster.
	WarmBytes uint64
	WarmIdle  time.Duration
	// CollectThreshold is the share of Limit above which clients are asked to collect garbage, which may hold
	// handles. Default 0.7, as Ray's high_plasma_storage_usage.
	CollectThreshold float64
	// CollectEvery bounds how often they are asked, CollectWait is what they are given for it before objects
	// are spilled. Default 30 s, 20 ms.
	CollectEvery, CollectWait time.Duration
	// LogEvery bounds repeated log lines of one kind. Default 10 s.
	LogEvery time.Duration
	// RetrySpill is the pause after a spill failed in every directory, or a read, doubling up to 32 times
	// it. Default 100 ms.
	RetrySpill time.Duration
}

// DefaultConfig is the configuration of a store of limit bytes.
func DefaultConfig(limit uint64) Config {
	return Config{
		Limit: limit, SpillThreshold: 0.8, MinSpillBytes: 100 << 20, SpillGarbage: 0.25, MaxFused: 2000, MaxSpills: 4, MaxRestores: 4,
		ArgsFraction: 0.7, FallbackBytes: limit, Stall: time.Second, Patience: 30 * time.Second, ReserveStep: 64 << 20, ColdFrom: 64 << 20, WarmBytes: 16 << 20,
		WarmIdle: 5 * time.Second, CollectThreshold: 0.7, CollectEvery: 30 * time.Second, CollectWait: 20 * time.Millisecond,
		LogEvery: 10 * time.Second, RetrySpill: 100 * time.Millisecond,
	}
}

// Validate reports everything that is wrong with the configuration.
func (c Config) Validate() error {
	var es []error
	bad := func(ok bool, format string, args ...any) {
		if !ok {
			es = append(es, fmt.Errorf("object store: "+format, args...))
		}
	}
	bad(c.Limit >= 4096 && c.Limit <= 1<<46, "limit of %d bytes, want 4 KiB to 64 TiB", c.Limit)
	bad(c.SpillThreshold > 0 && c.SpillThreshold <= 1, "spill threshold %v, want above 0 and at most 1", c.SpillThreshold)
	bad(c.CollectThreshold > 0 && c.CollectThreshold <= 1, "collect threshold %v, want above 0 and at most 1", c.CollectThreshold)
	bad(c.ArgsFraction > 0 && c.ArgsFraction <= 1, "argument fraction %v, want above 0 and at most 1", c.ArgsFraction)
	bad(c.SpillGarbage >= 0, "share of garbage in spill files %v, want at least 0", c.SpillGarbage)
	bad(c.MaxFused > 0, "%d fused objects, want at least 1", c.MaxFused)
	bad(c.MaxSpills > 0 && c.MaxRestores > 0, "%d spills and %d restores at a time, want at least 1", c.MaxSpills, c.MaxRestores)
	bad(c.ReserveStep >= 4096 && c.ReserveStep%4096 == 0, "reserve step of %d bytes, want whole pages", c.ReserveStep)
	bad(c.Stall > 0 && c.Patience > 0 && c.WarmIdle > 0 && c.RetrySpill > 0 && c.LogEvery > 0 && c.CollectEvery > 0, "a duration is not positive")
	return errors.Join(es...)
}
